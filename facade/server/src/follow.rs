//! Files that are read again when they change. It knows when they changed, and nothing about what is in them.

use std::{fs, path::PathBuf, time::SystemTime};

/// When each of some files was changed last.
type Changed<const N: usize> = [Option<SystemTime>; N];

/// Files that belong together, and of when the version is that was read.
#[derive(Debug)]
pub(crate) struct Followed<const N: usize> {
    files: [PathBuf; N],
    read: Option<Changed<N>>,
    /// The version of which a failure was returned.
    failed: Option<Changed<N>>,
}

impl<const N: usize> Followed<N> {
    /// Files of which it is not known which version is in use: the first look reads them.
    pub(crate) fn new(files: [PathBuf; N]) -> Self {
        Self {
            files,
            read: None,
            failed: None,
        }
    }

    /// Loads the files if they have changed since they were loaded. A load that fails is repeated at each look until it works. Its error is returned
    /// once for each change.
    pub(crate) fn look<T, E>(
        &mut self,
        load: impl FnOnce() -> Result<T, E>,
    ) -> Option<Result<T, E>> {
        // Before the load: a change during the load is seen by the next look.
        let now = self
            .files
            .each_ref()
            .map(|file| fs::metadata(file).ok()?.modified().ok());
        if self.read == Some(now) {
            return None;
        }
        match load() {
            Ok(loaded) => {
                (self.read, self.failed) = (Some(now), None);
                Some(Ok(loaded))
            }
            Err(_) if self.failed == Some(now) => None,
            Err(error) => {
                self.failed = Some(now);
                Some(Err(error))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{fs::File, path::Path, time::Duration};

    use super::*;

    fn change(file: &Path, seconds: u64) {
        let date = SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
        File::create(file).unwrap().set_modified(date).unwrap();
    }

    #[test]
    fn a_change_before_the_first_look_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("tokens.toml");
        change(&file, 1);
        let mut followed = Followed::new([file.clone()]);
        assert_eq!(followed.look(|| Ok::<_, ()>(1)), Some(Ok(1)));
        assert_eq!(followed.look(|| Ok::<_, ()>(2)), None);
        change(&file, 2);
        assert_eq!(followed.look(|| Ok::<_, ()>(3)), Some(Ok(3)));
        assert_eq!(followed.look(|| Ok::<_, ()>(4)), None);
    }

    #[test]
    fn a_failure_is_returned_once_and_the_files_are_read_when_that_works() {
        let folder = tempfile::tempdir().unwrap();
        let files = ["tls.pem", "tls.key"].map(|name| folder.path().join(name));
        let [certificate, key] = &files;
        change(certificate, 1);
        let mut followed = Followed::new(files.clone());
        assert_eq!(
            followed.look(|| Err::<(), _>("no key")),
            Some(Err("no key"))
        );
        assert_eq!(followed.look(|| Err::<(), _>("no key")), None);
        change(key, 2);
        assert_eq!(followed.look(|| Err::<(), _>("pair")), Some(Err("pair")));
        assert_eq!(followed.look(|| Err::<(), _>("pair")), None);
        // Nothing changed, but the disk answers again.
        assert_eq!(followed.look(|| Ok::<_, &str>(1)), Some(Ok(1)));
        assert_eq!(followed.look(|| Ok::<_, &str>(2)), None);
        change(certificate, 3);
        assert_eq!(followed.look(|| Err::<(), _>("pair")), Some(Err("pair")));
    }
}
