//! Films whose samples hold their own numbers, and parts of them: every sample is found where the
//! new index says.

#![allow(clippy::unwrap_used)]

use super::atoms::{Atoms, number32, write_atom};
use super::{Excerpt, Layout, Mp4Error, Part, Scan, cut};

/// A film of one track with a sample every 100 ms.
#[derive(Clone, Copy)]
struct Film {
    samples: u32,
    /// Samples of the chunks: the first ones, one after the other, and of all others.
    chunks: &'static [u32],
    /// Whether all samples have the same size, which is 4 bytes.
    is_even: bool,
    is_wide: bool,
    /// Whether the index stands behind the samples.
    is_last: bool,
}

const PLAIN: Film = Film {
    samples: 20,
    chunks: &[4],
    is_even: false,
    is_wide: false,
    is_last: false,
};
const SAMPLE_MS: u32 = 100;
/// Every fifth sample, the first one included.
const KEY_FRAME_EACH: u32 = 5;

impl Film {
    fn sample(&self, number: u32) -> Vec<u8> {
        let size = if self.is_even { 4 } else { 4 + number % 3 };
        let mut bytes = number.to_be_bytes().to_vec();
        bytes.resize(size as usize, 0xff);
        bytes
    }

    /// How many samples each chunk has.
    fn chunk_sizes(&self) -> Vec<u32> {
        let mut sizes = Vec::new();
        let mut left = self.samples;
        while left > 0 {
            let last = self.chunks.len() - 1;
            let size = self.chunks[sizes.len().min(last)].min(left);
            sizes.push(size);
            left -= size;
        }
        sizes
    }

    fn index(&self, mut offset: u64) -> Vec<u8> {
        let mut out = Vec::new();
        let duration = self.samples * SAMPLE_MS;
        let header = |bytes: usize, at: usize, scale: Option<u32>| {
            let mut content = vec![0; bytes];
            if let Some(scale) = scale {
                content[12..16].copy_from_slice(&scale.to_be_bytes());
            }
            content[at..at + 4].copy_from_slice(&duration.to_be_bytes());
            content
        };
        let (mut runs, mut offsets, mut sizes) = (Vec::new(), Vec::new(), Vec::new());
        let mut number = 0;
        for (chunk, count) in self.chunk_sizes().into_iter().enumerate() {
            runs.push([chunk as u32 + 1, count, 1]);
            offsets.push(offset);
            for _ in 0..count {
                sizes.push(self.sample(number).len() as u32);
                offset += u64::from(sizes[number as usize]);
                number += 1;
            }
        }
        let table = |head: &[u32], entries: &[u32]| -> Vec<u8> {
            let numbers = head.iter().chain(entries);
            numbers.flat_map(|number| number.to_be_bytes()).collect()
        };
        let key_frames: Vec<u32> = (1..=self.samples)
            .step_by(KEY_FRAME_EACH as usize)
            .collect();
        write_atom(&mut out, b"moov", |out| {
            write_atom(out, b"mvhd", |out| out.extend(header(100, 16, Some(1000))));
            write_atom(out, b"trak", |out| {
                write_atom(out, b"tkhd", |out| out.extend(header(84, 20, None)));
                write_atom(out, b"mdia", |out| {
                    write_atom(out, b"mdhd", |out| out.extend(header(24, 16, Some(1000))));
                    write_atom(out, b"minf", |out| {
                        write_atom(out, b"stbl", |out| {
                            let mut atom = |name: &[u8; 4], content: Vec<u8>| {
                                write_atom(out, name, |out| out.extend(content));
                            };
                            atom(b"stts", table(&[0, 1], &[self.samples, SAMPLE_MS]));
                            atom(b"stss", table(&[0, key_frames.len() as u32], &key_frames));
                            atom(b"ctts", table(&[0, 2], &[3, 7, self.samples - 3, 9]));
                            let run_count = runs.len() as u32;
                            atom(b"stsc", table(&[0, run_count], runs.as_flattened()));
                            let (each, sizes) = if self.is_even {
                                (4, &[][..])
                            } else {
                                (0, &sizes[..])
                            };
                            atom(b"stsz", table(&[0, each, self.samples], sizes));
                            let chunk_count = offsets.len() as u32;
                            let mut content = table(&[0, chunk_count], &[]);
                            for offset in &offsets {
                                if self.is_wide {
                                    content.extend(offset.to_be_bytes());
                                } else {
                                    content.extend((*offset as u32).to_be_bytes());
                                }
                            }
                            atom(if self.is_wide { b"co64" } else { b"stco" }, content);
                        });
                    });
                });
            });
        });
        out
    }

    fn bytes(&self) -> Vec<u8> {
        let mut kind = Vec::new();
        write_atom(&mut kind, b"ftyp", |out| out.extend_from_slice(b"isom"));
        let mut samples = Vec::new();
        write_atom(&mut samples, b"mdat", |out| {
            (0..self.samples).for_each(|number| out.extend(self.sample(number)));
        });
        let index_bytes = self.index(0).len();
        let before = kind.len() + if self.is_last { 0 } else { index_bytes };
        let index = self.index(before as u64 + 8);
        if self.is_last {
            [kind, samples, index].concat()
        } else {
            [kind, index, samples].concat()
        }
    }
}

fn scan(file: &[u8]) -> Result<Layout, Mp4Error> {
    let mut scan = Scan::new(file.len() as u64);
    while let Some(offset) = scan.wanted() {
        scan.take(&file[offset as usize..])?;
    }
    Ok(scan.layout().clone())
}

fn slice(file: &[u8], range: Option<std::ops::Range<u64>>) -> &[u8] {
    range.map_or(&[], |range| &file[range.start as usize..range.end as usize])
}

fn part(file: &[u8], wish: &Excerpt) -> Result<Vec<u8>, Mp4Error> {
    let layout = scan(file)?;
    let kind = slice(file, layout.kind.clone());
    let index = slice(file, layout.index.clone());
    let Part { index, samples } = cut(kind, index, &layout, wish)?;
    Ok([&index, slice(file, Some(samples))].concat())
}

/// What is in an atom, by its path.
fn atom<'a>(content: &'a [u8], path: &[&[u8; 4]]) -> Option<&'a [u8]> {
    let Some((first, rest)) = path.split_first() else {
        return Some(content);
    };
    let mut atoms = Atoms(content).map(Result::unwrap);
    let (_, content) = atoms.find(|(name, _)| name == *first)?;
    atom(content, rest)
}

fn table(film: &[u8], name: &[u8; 4]) -> Option<Vec<u32>> {
    let path = [b"moov", b"trak", b"mdia", b"minf", b"stbl", name];
    let content = atom(film, &path)?;
    let (numbers, _) = content.as_chunks();
    Some(
        numbers
            .iter()
            .map(|number| u32::from_be_bytes(*number))
            .collect(),
    )
}

/// The numbers of the samples, each read where the index of the film says.
fn samples(film: &[u8]) -> Vec<u32> {
    let runs = table(film, b"stsc").unwrap();
    let sizes = table(film, b"stsz").unwrap();
    let offsets: Vec<u32> = match table(film, b"stco") {
        Some(offsets) => offsets[2..].to_vec(),
        None => {
            let wide = table(film, b"co64").unwrap();
            wide[2..].chunks(2).map(|pair| pair[1]).collect()
        }
    };
    let (runs, _) = runs[2..].as_chunks::<3>();
    let mut found = Vec::new();
    for (chunk, offset) in offsets.iter().enumerate() {
        let run = runs
            .iter()
            .rfind(|run| run[0] as usize <= chunk + 1)
            .unwrap();
        let mut at = *offset as usize;
        for _ in 0..run[1] {
            found.push(number32(film, at).unwrap());
            at += match sizes[1] {
                0 => sizes[3 + found.len() - 1] as usize,
                same => same as usize,
            };
        }
    }
    assert_eq!(sizes[2] as usize, found.len(), "the count of sizes");
    found
}

fn wish(start_ms: u64, length_ms: Option<u64>) -> Excerpt {
    Excerpt {
        start_ms,
        length_ms,
        from_key_frame: false,
    }
}

#[test]
fn every_part_of_a_film_has_its_samples() {
    for film in [
        PLAIN,
        Film {
            chunks: &[1],
            ..PLAIN
        },
        Film {
            chunks: &[20],
            ..PLAIN
        },
        Film {
            chunks: &[3, 3, 5, 1, 2],
            ..PLAIN
        },
        Film {
            is_even: true,
            ..PLAIN
        },
        Film {
            is_wide: true,
            is_last: true,
            ..PLAIN
        },
        Film {
            is_last: true,
            chunks: &[7],
            ..PLAIN
        },
    ] {
        let file = film.bytes();
        assert_eq!(samples(&file), (0..film.samples).collect::<Vec<_>>());
        for start in 0..film.samples {
            let all = part(&file, &wish(u64::from(start * SAMPLE_MS), None)).unwrap();
            assert_eq!(samples(&all), (start..film.samples).collect::<Vec<_>>());
            for length in 1..=film.samples {
                let end = (start + length).min(film.samples);
                let length_ms = Some(u64::from(length * SAMPLE_MS));
                let some = part(&file, &wish(u64::from(start * SAMPLE_MS), length_ms)).unwrap();
                assert_eq!(samples(&some), (start..end).collect::<Vec<_>>());
                let times = table(&some, b"stts").unwrap();
                assert_eq!(times[2..], [end - start, SAMPLE_MS]);
                let header = atom(&some, &[b"moov", b"mvhd"]).unwrap();
                assert_eq!(number32(header, 16), Some((end - start) * SAMPLE_MS));
            }
        }
    }
}

#[test]
fn tables_of_single_samples_follow() {
    let film = part(&PLAIN.bytes(), &wish(200, Some(900))).unwrap();
    assert_eq!(samples(&film), (2..11).collect::<Vec<_>>());
    assert_eq!(table(&film, b"stss").unwrap()[1..], [2, 4, 9]);
    assert_eq!(table(&film, b"ctts").unwrap()[1..], [2, 1, 7, 8, 9]);
}

#[test]
fn a_part_may_begin_with_a_key_frame() {
    let from_key_frame = Excerpt {
        from_key_frame: true,
        ..wish(730, Some(400))
    };
    let film = part(&PLAIN.bytes(), &from_key_frame).unwrap();
    assert_eq!(samples(&film), (5..11).collect::<Vec<_>>());
    let edits = atom(&film, &[b"moov", b"trak", b"edts", b"elst"]).unwrap();
    // From sample 5 to sample 7, at which 730 ms is.
    assert_eq!(number32(edits, 20), Some(2 * SAMPLE_MS));
    assert_eq!(number32(edits, 12), Some(400));
}

/// What is put in place of something in a film's bytes, and what is wrong then.
const BROKEN: &[(&[u8], &[u8], &str)] = &[
    (b"mdat", b"free", "no mp4 mdat atoms were found"),
    (b"trak", b"free", "no mp4 trak atoms were found"),
    (b"stts", b"free", "no mp4 stts atoms were found"),
    (b"stsc", b"free", "no mp4 stsc atoms were found"),
    (b"stco", b"free", "no mp4 stco atoms were found"),
    (b"ctts", b"stts", "duplicate mp4 stts atom"),
    (b"ftyp", b"mdat", "start time is out mp4 mdat atom"),
    (
        b"mvhd",
        b"cmov",
        "mp4 compressed moov atom (cmov) is not supported",
    ),
    (
        b"\0\0\0\x0cftyp",
        b"\0\0\0\x04ftyp",
        "mp4 atom is too small:4",
    ),
    (
        b"\0\0\0\x0cftyp",
        b"\0\x01\0\0ftyp",
        "mp4 atom too large:65536",
    ),
    // What follows is read as an atom whose size is "isom".
    (
        b"\0\0\0\x0cftyp",
        b"\0\0\0\x08ftyp",
        "mp4 atom too large:1769172845",
    ),
    (
        b"stsz\0\0\0\0\0\0\0\0\0\0\0\x14",
        b"stsz\0\0\0\0\0\0\0\0\xff\0\0\x14",
        "mp4 stsz atom too small",
    ),
    (
        b"stsz\0\0\0\0\0\0\0\0\0\0\0\x14",
        b"stsz\0\0\0\0\0\0\0\0\0\0\0\x05",
        "start time is out mp4 stsz samples",
    ),
    (
        b"stsc\0\0\0\0\0\0\0\x05\0\0\0\x01\0\0\0\x04",
        b"stsc\0\0\0\0\0\0\0\x05\0\0\0\0\0\0\0\x04",
        "zero chunk",
    ),
    (
        b"stsc\0\0\0\0\0\0\0\x05",
        b"stsc\0\0\0\0\0\0\0\0",
        "zero number of entries in stsc atom",
    ),
];

#[test]
fn broken_films_are_refused_with_the_reason() {
    let file = PLAIN.bytes();
    for (old, new, words) in BROKEN {
        let mut broken = file.clone();
        let at = memchr::memmem::find(&broken, old).unwrap();
        broken.splice(at..at + new.len(), new.iter().copied());
        let error = part(&broken, &wish(500, Some(700))).unwrap_err();
        assert_eq!(error.to_string(), *words, "{old:?}");
    }
    let error = part(&file[..4], &wish(500, None)).unwrap_err();
    assert_eq!(error.to_string(), "mp4 file truncated");
    for (start_ms, words) in [
        (2001, "mp4 start time exceeds file duration"),
        (2000, "no mp4 trak atoms were found"),
    ] {
        let error = part(&file, &wish(start_ms, None)).unwrap_err();
        assert_eq!(error.to_string(), words);
    }
}

#[test]
fn a_film_cut_short_at_any_byte_is_no_reason_to_panic() {
    let file = PLAIN.bytes();
    for end in 0..file.len() {
        let cut = part(&file[..end], &wish(500, Some(700)));
        assert!(cut.is_err(), "{end} bytes");
    }
}
