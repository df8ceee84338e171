//! `worker_cpu_affinity`: masks of any length, and how they are dealt to lanes.

use turnpike_lane::sys::process::CPUS_MAX;

/// A set of CPUs: CPU `n` is bit `n % 64` of word `n / 64`.
pub type CpuMask = Vec<u64>;

/// Which CPUs each lane runs on.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Affinity {
    /// Wherever the kernel puts it.
    Free,
    /// One CPU each, of those in the mask (all that there are, when there is none).
    Auto(Option<CpuMask>),
    /// The mask of the same number, the last one for the lanes that are left.
    Masks(Vec<CpuMask>),
}

impl Affinity {
    /// Reads the directive's arguments.
    ///
    /// # Errors
    /// nginx's message.
    pub fn parse(words: &[&str]) -> Result<Affinity, String> {
        match words {
            ["auto"] => Ok(Affinity::Auto(None)),
            ["auto", mask] => Ok(Affinity::Auto(Some(parse_mask(mask)?))),
            ["auto", ..] => {
                Err("invalid number of arguments in \"worker_cpu_affinity\" directive".to_owned())
            }
            masks => {
                let masks: Result<Vec<_>, _> = masks.iter().map(|mask| parse_mask(mask)).collect();
                Ok(Affinity::Masks(masks?))
            }
        }
    }

    /// Whether there are several masks, but not as many as lanes: worth nginx's warning.
    pub fn masks_do_not_fit(&self, lanes: usize) -> bool {
        matches!(self, Affinity::Masks(masks) if masks.len() != 1 && masks.len() != lanes)
    }

    /// The mask of a lane; `None` leaves it to the kernel.
    pub fn of_lane(&self, lane: usize, cpu_count: usize) -> Option<CpuMask> {
        match self {
            Affinity::Free => None,
            Affinity::Masks(masks) => masks.get(lane).or(masks.last()).cloned(),
            Affinity::Auto(mask) => {
                let cpus: Vec<usize> = match mask {
                    Some(mask) => (0..mask.len() * 64).filter(|cpu| has(mask, *cpu)).collect(),
                    None => (0..cpu_count).collect(),
                };
                let cpu = *cpus.get(lane.checked_rem(cpus.len())?)?;
                let mut single = vec![0; cpu / 64 + 1];
                single[cpu / 64] = 1 << (cpu % 64);
                Some(single)
            }
        }
    }
}

fn has(mask: &[u64], cpu: usize) -> bool {
    mask.get(cpu / 64)
        .is_some_and(|word| word & (1 << (cpu % 64)) != 0)
}

fn parse_mask(text: &str) -> Result<CpuMask, String> {
    if text.len() > CPUS_MAX {
        return Err(format!(
            "\"worker_cpu_affinity\" supports up to {CPUS_MAX} CPUs only"
        ));
    }
    let mut mask = Vec::new();
    for (cpu, digit) in text.chars().rev().filter(|digit| *digit != ' ').enumerate() {
        if cpu / 64 == mask.len() {
            mask.push(0);
        }
        match digit {
            '0' => {}
            '1' => mask[cpu / 64] |= 1 << (cpu % 64),
            other => {
                return Err(format!(
                    "invalid character \"{other}\" in \"worker_cpu_affinity\""
                ));
            }
        }
    }
    Ok(mask)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn lanes_get_their_cpus() {
        let wide = format!("1{}", "0".repeat(70));
        let cases: &[(&[&str], usize, Option<CpuMask>)] = &[
            (&["01", "10"], 0, Some(vec![1])),
            (&["01", "10"], 1, Some(vec![2])),
            (&["01", "10"], 5, Some(vec![2])),
            (&["0 1 1"], 0, Some(vec![3])),
            (&[wide.as_str()], 0, Some(vec![0, 1 << 6])),
            (&["auto"], 0, Some(vec![1])),
            (&["auto"], 3, Some(vec![2])),
            (&["auto", "100100"], 1, Some(vec![32])),
            (&["auto", "100100"], 2, Some(vec![4])),
            (&["auto", "0"], 0, None),
        ];
        for (words, lane, mask) in cases {
            let affinity = Affinity::parse(words).unwrap();
            assert_eq!(&affinity.of_lane(*lane, 2), mask, "{words:?} {lane}");
        }
        assert_eq!(Affinity::Free.of_lane(0, 2), None);
    }

    #[test]
    fn mistakes_are_named() {
        let long = "0".repeat(CPUS_MAX + 1);
        let cases: &[(&[&str], &str)] = &[
            (
                &["0x"],
                "invalid character \"x\" in \"worker_cpu_affinity\"",
            ),
            (&["auto", "1", "1"], "invalid number of arguments in"),
            (&[long.as_str()], "supports up to 8192 CPUs only"),
        ];
        for (words, message) in cases {
            let error = Affinity::parse(words).unwrap_err();
            assert!(error.contains(message), "{error}");
        }
    }

    #[test]
    fn a_wrong_count_of_masks_is_noticed() {
        let two = Affinity::parse(&["1", "10"]).unwrap();
        let one = Affinity::parse(&["1"]).unwrap();
        assert!(two.masks_do_not_fit(3) && !two.masks_do_not_fit(2) && !one.masks_do_not_fit(3));
    }
}
