//! Links: how Compute Engine writes the address of a resource, and the forms that it accepts.

/// The beginning of every link that the emulator returns, whatever host the client called.
const ROOT: &str = "https://www.googleapis.com/compute/v1/";

/// Returns the whole link of a path such as `projects/p/zones/z`.
pub(crate) fn link(path: &str) -> String {
    format!("{ROOT}{path}")
}

/// A resource that a request names by a link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ResourceLink {
    /// Its project; `None` if the link has none, which means the project of the request.
    pub(crate) project: Option<String>,
    /// The path below the project, in segments, such as `zones`, `z`, `machineTypes`, `m`.
    pub(crate) path: Vec<String>,
}

impl ResourceLink {
    /// Parses a whole or a partial link: with a host, from `projects` on, or below the project.
    ///
    /// Returns `None` for a bare name and for a path outside zones, regions and `global`.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let below = match text.split_once("://") {
            Some((_, rest)) => rest.split_once("/compute/v1/")?.1,
            None => text.strip_prefix('/').unwrap_or(text),
        };
        let mut parts: Vec<String> = below.split('/').map(str::to_owned).collect();
        let project = (parts.len() > 2 && parts[0] == "projects").then(|| {
            let mut head = parts.drain(..2);
            head.nth(1).unwrap_or_default()
        });
        let scoped = matches!(&*parts[0], "zones" | "regions" | "global");
        let whole = parts.len() > 2 && parts.iter().all(|part| !part.is_empty());
        (scoped && whole).then_some(Self {
            project,
            path: parts,
        })
    }

    /// Returns the segments of the path, to match on.
    pub(crate) fn parts(&self) -> Vec<&str> {
        self.path.iter().map(String::as_str).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_are_read_in_every_form() {
        let parts = ["zones", "z", "machineTypes", "m"];
        for (text, project) in [
            (
                "https://www.googleapis.com/compute/v1/projects/p/zones/z/machineTypes/m",
                Some("p"),
            ),
            (
                "http://127.0.0.1:1/compute/v1/projects/p/zones/z/machineTypes/m",
                Some("p"),
            ),
            ("projects/p/zones/z/machineTypes/m", Some("p")),
            ("zones/z/machineTypes/m", None),
            ("/zones/z/machineTypes/m", None),
        ] {
            let parsed = ResourceLink::parse(text).unwrap();
            assert_eq!(
                (parsed.parts(), parsed.project.as_deref()),
                (parts.to_vec(), project)
            );
        }
        for text in [
            "",
            "m",
            "machineTypes/m",
            "https://x/y",
            "zones//machineTypes/m",
            "zones/z",
        ] {
            assert_eq!(ResourceLink::parse(text), None, "{text}");
        }
    }
}
