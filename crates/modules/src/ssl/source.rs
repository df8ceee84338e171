//! Certificates and keys that variables name: files are read when a connection needs them, on
//! threads that are not lanes, and kept for a while where a cache is configured.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, Read as _};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustls::pki_types::CertificateDer;
use rustls::sign::{CertifiedKey, SigningKey};
use turnpike_conf::{ConfError, Entry, View, value};
use turnpike_lane::log::Errno;
use turnpike_lane::trust;
use turnpike_plan::Quoted;
use turnpike_plan::background::run_blocking;
use turnpike_plan::tls::{CertificateNames, CertificateSource, Loaded, Loading};

use super::identity::{self, DATA, NO_FILES};
use super::private_key;

/// Bytes of a file with certificates or a key, at most: a chain of hundreds.
const FILE_BYTES_MAX: u64 = 1024 * 1024;

/// Times of a cache that does not say; nginx's.
const INACTIVE_DEFAULT: Duration = Duration::from_secs(10);
const VALID_DEFAULT: Duration = Duration::from_secs(60);

/// Reads certificates and keys.
pub(super) struct Source {
    /// Where relative names start.
    folder: PathBuf,
    /// What opens encrypted keys.
    passwords: Arc<[Vec<u8>]>,
    /// `None`: nothing is kept.
    cache: Option<Arc<Cache>>,
}

/// What a name stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Kind {
    Chain,
    Key,
}

/// Whether the cache keeps what was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Keeping {
    /// The cache has had it.
    Already,
    /// The cache keeps it from now on.
    Next,
    /// A key that a password protects, or what stands in the configuration.
    Never,
}

/// What was read.
#[derive(Clone)]
enum Object {
    Chain(Arc<[CertificateDer<'static>]>),
    Key(Arc<dyn SigningKey>),
}

/// What a cache may hold (`..._certificate_cache`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Limits {
    objects_max: usize,
    /// One that was not used for so long is read again.
    inactive: Duration,
    /// One that was read so long ago is read again.
    valid: Duration,
}

/// Certificates and keys that were read, for all lanes.
struct Cache {
    limits: Limits,
    objects: Mutex<HashMap<(Kind, Vec<u8>), Kept>>,
}

struct Kept {
    object: Object,
    read: Instant,
    used: Instant,
}

impl Source {
    /// What reads the certificates of a server or of a location. `cache` is the directive that says
    /// what is kept.
    ///
    /// # Errors
    /// nginx's words for what the directive says.
    pub(super) fn new(
        view: View<'_>,
        folder: &Path,
        passwords: Vec<Vec<u8>>,
        cache: Option<&Entry>,
    ) -> Result<Source, ConfError> {
        let limits = match cache {
            None => None,
            Some(entry) => limits(entry).map_err(|message| view.error(entry.span, message))?,
        };
        let cache = limits.map(|limits| {
            Arc::new(Cache {
                limits,
                objects: Mutex::default(),
            })
        });
        Ok(Source {
            folder: folder.to_owned(),
            passwords: passwords.into(),
            cache,
        })
    }
}

impl CertificateSource for Source {
    fn load(&self, names: Vec<CertificateNames>) -> Loading {
        let now = Instant::now();
        let kept = |kind, name: &[u8]| self.cache.as_ref()?.find(now, kind, name);
        let pairs: Vec<_> = names
            .iter()
            .map(|[chain, key]| [kept(Kind::Chain, chain), kept(Kind::Key, key)])
            .collect();
        if pairs.iter().flatten().all(Option::is_some) {
            let mut read = names.iter().zip(pairs);
            let joined = read.try_fold(Vec::new(), |mut all, (names, pair)| {
                let [Some(chain), Some(key)] = pair else {
                    return Ok(all);
                };
                all.push(Arc::new(joined(names, chain, key)?));
                Ok(all)
            });
            return Loading::Done(joined);
        }
        let reader = Reader {
            folder: self.folder.clone(),
            passwords: Arc::clone(&self.passwords),
            cache: self.cache.clone(),
        };
        match run_blocking(move || reader.read_all(&names)) {
            Ok(read) => Loading::Later(Box::pin(async move {
                let panicked = || Err("reading a certificate failed".to_owned());
                read.await.unwrap_or_else(panicked)
            })),
            Err(refusal) => Loading::Done(Err(format!("cannot load certificate: {refusal}"))),
        }
    }
}

/// What a thread needs that reads.
struct Reader {
    folder: PathBuf,
    passwords: Arc<[Vec<u8>]>,
    cache: Option<Arc<Cache>>,
}

impl Reader {
    fn read_all(&self, names: &[CertificateNames]) -> Loaded {
        let pairs = names.iter().map(|pair| {
            let [chain_name, key_name] = pair;
            let (chain, chain_kept) = self.object(Kind::Chain, chain_name)?;
            let (key, key_kept) = self.object(Kind::Key, key_name)?;
            // A certificate whose key a password protects is read again with it.
            if let Some(cache) = &self.cache
                && ![chain_kept, key_kept].contains(&Keeping::Never)
            {
                let objects = [
                    (Kind::Chain, chain_name, &chain, chain_kept),
                    (Kind::Key, key_name, &key, key_kept),
                ];
                for (kind, name, object, keeping) in objects {
                    if keeping == Keeping::Next {
                        cache.keep(kind, name, object.clone());
                    }
                }
            }
            joined(pair, chain, key).map(Arc::new)
        });
        pairs.collect()
    }

    fn kept(&self, kind: Kind, name: &[u8]) -> Option<Object> {
        self.cache.as_ref()?.find(Instant::now(), kind, name)
    }

    fn object(&self, kind: Kind, name: &[u8]) -> Result<(Object, Keeping), String> {
        if let Some(kept) = self.kept(kind, name) {
            return Ok((kept, Keeping::Already));
        }
        let what = match kind {
            Kind::Chain => "certificate",
            Kind::Key => "certificate key",
        };
        let failed = |shown: &str, why: String| format!("cannot load {what} \"{shown}\": {why}");
        if let Some(pem) = name.strip_prefix(DATA.as_bytes()) {
            // It is not shown: a key may stand in it.
            let object = self.parse(kind, pem);
            return match object {
                Ok(object) => Ok((object, Keeping::Never)),
                Err(why) => Err(failed("data:", why)),
            };
        }
        let shown = Quoted(name).to_string();
        if name.is_empty() {
            return Err(failed(&shown, "its name is empty".to_owned()));
        }
        if let Some(start) = NO_FILES
            .iter()
            .find(|start| name.starts_with(start.as_bytes()))
        {
            return Err(failed(&shown, format!("\"{start}\" is not supported yet")));
        }
        let path = self.folder.join(OsStr::from_bytes(name));
        let shown = path.display().to_string();
        let pem = read_file(&path);
        let pem = pem
            .map_err(|error| failed(&shown, format!("BIO_new_file() failed {}", Errno(&error))))?;
        let object = self.parse(kind, &pem).map_err(|why| failed(&shown, why))?;
        let keeping = if kind == Kind::Key && private_key::is_encrypted(&pem) {
            Keeping::Never
        } else {
            Keeping::Next
        };
        Ok((object, keeping))
    }

    fn parse(&self, kind: Kind, pem: &[u8]) -> Result<Object, String> {
        match kind {
            Kind::Chain => {
                let chain = trust::chain(pem).map_err(|why| why.to_string())?;
                Ok(Object::Chain(chain.into()))
            }
            Kind::Key => {
                let key = private_key::read(pem, &self.passwords);
                key.map(Object::Key)
                    .map_err(|why| format!("PEM_read_bio_PrivateKey() failed (SSL: {why})"))
            }
        }
    }
}

fn joined(names: &CertificateNames, chain: Object, key: Object) -> Result<CertifiedKey, String> {
    let (Object::Chain(chain), Object::Key(key)) = (chain, key) else {
        return Err("the file for the key holds a certificate".to_owned());
    };
    let identity = CertifiedKey::new(chain.to_vec(), key);
    if identity::is_its_key(&identity) {
        Ok(identity)
    } else {
        let name = if names[1].starts_with(DATA.as_bytes()) {
            "data:".to_owned()
        } else {
            Quoted(&names[1]).to_string()
        };
        Err(format!(
            "SSL_use_PrivateKey(\"{name}\") failed (SSL: key values mismatch)"
        ))
    }
}

/// The bytes of a plain file; nothing is waited for, as a FIFO's writer would be.
fn read_file(path: &Path) -> io::Result<Vec<u8>> {
    if !fs::metadata(path)?.is_file() {
        return Err(io::Error::from_raw_os_error(EINVAL));
    }
    let mut bytes = Vec::new();
    File::open(path)?
        .take(FILE_BYTES_MAX + 1)
        .read_to_end(&mut bytes)?;
    if bytes.len() as u64 > FILE_BYTES_MAX {
        Err(io::Error::from_raw_os_error(EFBIG))
    } else {
        Ok(bytes)
    }
}

/// Invalid argument: it is no file; and too large a file, errno(3) on Linux.
const EINVAL: i32 = 22;
const EFBIG: i32 = 27;

/// `off`, or `max=NUMBER [inactive=TIME] [valid=TIME]`.
fn limits(entry: &Entry) -> Result<Option<Limits>, String> {
    let name = entry.row.name;
    let mut objects_max = None;
    let (mut inactive, mut valid) = (INACTIVE_DEFAULT, VALID_DEFAULT);
    for word in entry.arguments.iter() {
        let text = word.text.as_str();
        let invalid = || format!("invalid parameter \"{text}\"");
        let seconds = |time: &str| {
            let seconds = value::seconds(time).ok_or_else(invalid)?;
            Ok::<_, String>(Duration::from_secs(seconds))
        };
        if text == "off" {
            return Ok(None);
        } else if let Some(max) = text.strip_prefix("max=") {
            let max = max.parse().ok().filter(|max| *max > 0);
            objects_max = Some(max.ok_or_else(invalid)?);
        } else if let Some(time) = text.strip_prefix("inactive=") {
            inactive = seconds(time)?;
        } else if let Some(time) = text.strip_prefix("valid=") {
            valid = seconds(time)?;
        } else {
            return Err(invalid());
        }
    }
    match objects_max {
        Some(objects_max) => Ok(Some(Limits {
            objects_max,
            inactive,
            valid,
        })),
        None => Err(format!("\"{name}\" must have the \"max\" parameter")),
    }
}

impl Cache {
    fn find(&self, now: Instant, kind: Kind, name: &[u8]) -> Option<Object> {
        let mut objects = self.objects.lock().unwrap_or_else(PoisonError::into_inner);
        let kept = objects.get_mut(&(kind, name.to_vec()))?;
        if now.duration_since(kept.read) > self.limits.valid
            || now.duration_since(kept.used) > self.limits.inactive
        {
            return None;
        }
        kept.used = now;
        Some(kept.object.clone())
    }

    /// Keeps one in place of that which was not used for the longest time. That one is looked for
    /// among all: a file was just read, which takes longer.
    fn keep(&self, kind: Kind, name: &[u8], object: Object) {
        let now = Instant::now();
        let mut objects = self.objects.lock().unwrap_or_else(PoisonError::into_inner);
        let inactive = self.limits.inactive;
        objects.retain(|_, kept| now.duration_since(kept.used) <= inactive);
        let key = (kind, name.to_vec());
        if objects.len() >= self.limits.objects_max && !objects.contains_key(&key) {
            let oldest = objects.iter().min_by_key(|(_, kept)| kept.used);
            let oldest = oldest.map(|(key, _)| key.clone());
            oldest.and_then(|key| objects.remove(&key));
        }
        let kept = Kept {
            object,
            read: now,
            used: now,
        };
        objects.insert(key, kept);
    }
}

#[cfg(test)]
mod tests {
    //! What a cache keeps.

    use std::time::{Duration, Instant};

    use super::{Cache, Kind, Limits, Object};

    fn cache(objects_max: usize, inactive_s: u64, valid_s: u64) -> Cache {
        Cache {
            limits: Limits {
                objects_max,
                inactive: Duration::from_secs(inactive_s),
                valid: Duration::from_secs(valid_s),
            },
            objects: Default::default(),
        }
    }

    fn has(cache: &Cache, name: &[u8]) -> bool {
        cache.find(Instant::now(), Kind::Chain, name).is_some()
    }

    fn keep(cache: &Cache, name: &[u8]) {
        cache.keep(Kind::Chain, name, Object::Chain([].into()));
    }

    #[test]
    fn the_one_that_was_not_used_for_the_longest_time_goes() {
        let cache = cache(2, 1000, 1000);
        keep(&cache, b"a");
        keep(&cache, b"b");
        assert!(has(&cache, b"a"));
        keep(&cache, b"c");
        assert!(has(&cache, b"a") && has(&cache, b"c") && !has(&cache, b"b"));
        // A key has a name of its own.
        assert!(cache.find(Instant::now(), Kind::Key, b"a").is_none());
        // What is kept again takes no other's place.
        keep(&cache, b"c");
        assert!(has(&cache, b"a"));
    }

    #[test]
    fn what_is_too_old_is_read_again() {
        for (inactive_s, valid_s) in [(5, 1000), (1000, 5)] {
            let cache = cache(2, inactive_s, valid_s);
            keep(&cache, b"a");
            let later = Instant::now() + Duration::from_secs(100);
            assert!(cache.find(later, Kind::Chain, b"a").is_none());
        }
    }
}
