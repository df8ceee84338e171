//! Requests from templates: each `{{...}}` in a URL's path, a header or the body is filled in anew
//! for each of `--variants`, from `--seed`.
//!
//! All variants are written before the run, so that a request costs no more than a fixed one.

use crate::mix::Random;

/// Longest text that a template asks for.
const LETTERS_MAX: usize = 1024;
/// The letters of `word`.
const LETTERS: &[u8; 26] = b"abcdefghijklmnopqrstuvwxyz";
/// What a template can ask for, in the words of the error message.
const KNOWN: &str = "seq, int:FIRST-LAST, zipf:FIRST-LAST, hex:LENGTH, word:LENGTH, uuid";

/// Fills templates in, one variant after the other.
#[derive(Debug)]
pub(crate) struct Filler {
    random: Random,
    number: u64,
}

impl Filler {
    /// Variants that depend on `seed` alone.
    pub(crate) fn new(seed: u64) -> Filler {
        Filler {
            random: Random::new(seed),
            number: 0,
        }
    }

    /// Goes on to the next variant.
    pub(crate) fn next(&mut self) {
        self.number += 1;
    }

    /// The text with its templates filled in.
    ///
    /// # Errors
    /// The template that is none.
    pub(crate) fn fill(&mut self, text: &str) -> Result<String, String> {
        let mut filled = String::with_capacity(text.len());
        let mut rest = text;
        while let Some((before, after)) = rest.split_once("{{") {
            let Some((name, behind)) = after.split_once("}}") else {
                break;
            };
            filled.push_str(before);
            let value = self.value(name.trim());
            filled.push_str(&value.ok_or_else(|| {
                format!("unknown template {{{{{name}}}}}; known ones are {KNOWN}")
            })?);
            rest = behind;
        }
        filled.push_str(rest);
        Ok(filled)
    }

    fn value(&mut self, name: &str) -> Option<String> {
        let (kind, argument) = name.split_once(':').unwrap_or((name, ""));
        match kind {
            "seq" => Some(self.number.to_string()),
            "int" => {
                let (first, count) = range(argument)?;
                let place = (self.random.unit() * count as f64) as u64;
                Some((first + place.min(count - 1)).to_string())
            }
            "zipf" => {
                let (first, count) = range(argument)?;
                // Evenly drawn logarithms: the n-th number comes about 1/n as often as the first.
                let place = ((count as f64 + 1.0).powf(self.random.unit()) - 1.0) as u64;
                Some((first + place.min(count - 1)).to_string())
            }
            "hex" => self.letters(length(argument)?, b"0123456789abcdef"),
            "word" => self.letters(length(argument)?, LETTERS),
            "uuid" => Some(self.uuid()),
            _ => None,
        }
    }

    fn letters(&mut self, length: usize, alphabet: &[u8]) -> Option<String> {
        let letter = |random: &mut Random| {
            let place = (random.unit() * alphabet.len() as f64) as usize;
            alphabet.get(place).copied().map(char::from)
        };
        (0..length).map(|_| letter(&mut self.random)).collect()
    }

    /// A random UUID: version 4, RFC 9562.
    fn uuid(&mut self) -> String {
        let (high, low) = (self.random.next(), self.random.next());
        let (high, low) = (high & !0xf000 | 0x4000, low & !(0b11 << 62) | (0b10 << 62));
        format!(
            "{:08x}-{:04x}-{:04x}-{:04x}-{:012x}",
            high >> 32,
            (high >> 16) & 0xffff,
            high & 0xffff,
            low >> 48,
            low & 0xffff_ffff_ffff
        )
    }
}

/// `FIRST-LAST` as the first number, and how many there are.
fn range(text: &str) -> Option<(u64, u64)> {
    let (first, last) = text.split_once('-')?;
    let (first, last): (u64, u64) = (first.parse().ok()?, last.parse().ok()?);
    let count = last.checked_sub(first)?.checked_add(1)?;
    Some((first, count))
}

fn length(text: &str) -> Option<usize> {
    let length: usize = text.parse().ok()?;
    (1..=LETTERS_MAX).contains(&length).then_some(length)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn templates_are_filled_in_by_the_seed_alone() {
        let text = "/{{seq}}/{{int:5-7}}/{{hex:4}}/{{word:3}}/{{ uuid }}/{{zipf:1-9}}{";
        let all = |seed| {
            let mut filler = Filler::new(seed);
            let variant = |_| {
                let filled = filler.fill(text);
                filler.next();
                filled
            };
            (0..50)
                .map(variant)
                .collect::<Result<Vec<String>, String>>()
        };
        let variants = all(1).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(all(1).as_ref(), Ok(&variants));
        assert_ne!(all(2).as_ref(), Ok(&variants));
        for (number, variant) in variants.iter().enumerate() {
            let parts: Vec<&str> = variant.trim_end_matches('{').split('/').collect();
            assert_eq!(parts[1], number.to_string());
            assert!(["5", "6", "7"].contains(&parts[2]), "{variant}");
            assert_eq!((parts[3].len(), parts[4].len(), parts[5].len()), (4, 3, 36));
            assert_eq!(&parts[5][14..15], "4", "{variant}");
            assert!(
                (1..=9).contains(&parts[6].parse().unwrap_or(0)),
                "{variant}"
            );
        }
    }

    #[test]
    fn the_first_numbers_of_zipf_come_most() {
        let mut filler = Filler::new(3);
        let mut counts = [0; 10];
        for _ in 0..3000 {
            let number = filler.fill("{{zipf:0-9}}").unwrap_or_default();
            counts[number.parse::<usize>().unwrap_or(9)] += 1;
        }
        assert!(
            counts[0] > 2 * counts[2] && counts[2] > counts[9],
            "{counts:?}"
        );
    }

    #[test]
    fn what_is_no_template_is_an_error() {
        let fill = |text: &str| Filler::new(1).fill(text);
        for text in [
            "{{}}",
            "{{int:7-5}}",
            "{{int:x}}",
            "{{hex:0}}",
            "{{nonsense}}",
        ] {
            let error = fill(text).err().unwrap_or_default();
            assert!(error.contains("known ones are seq, int"), "{text}: {error}");
        }
        assert_eq!(fill("a {\"b\": {}} {{"), Ok("a {\"b\": {}} {{".to_owned()));
    }
}
