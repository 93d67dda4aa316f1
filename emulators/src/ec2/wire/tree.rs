//! XML elements that are built by hand, for responses whose shape depends on the request.
//!
//! Owns only the order of elements. Names are those of the service model; `emulators/peers/run` checks them.

use serde::{Serialize, Serializer, ser::SerializeMap as _};

use super::xml::Set;

/// The children of an element, in the order of their addition.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Tree(Vec<(&'static str, Node)>);

/// A child.
#[derive(Clone, Debug, PartialEq)]
enum Node {
    /// A text.
    Text(String),
    /// Further elements.
    Tree(Tree),
    /// A list of elements.
    Trees(Set<Tree>),
}

impl Tree {
    /// Adds an element with a text.
    #[expect(
        clippy::needless_pass_by_value,
        reason = "callers pass texts, numbers and references alike"
    )]
    pub(crate) fn text(self, name: &'static str, text: impl ToString) -> Self {
        self.node(name, Node::Text(text.to_string()))
    }

    /// Adds an element with a text, if there is one.
    pub(crate) fn some(self, name: &'static str, text: Option<impl ToString>) -> Self {
        match text {
            Some(text) => self.text(name, text),
            None => self,
        }
    }

    /// Adds an element with further ones.
    pub(crate) fn tree(self, name: &'static str, tree: Self) -> Self {
        self.node(name, Node::Tree(tree))
    }

    /// Adds a list of elements.
    pub(crate) fn set(self, name: &'static str, items: impl IntoIterator<Item = Self>) -> Self {
        self.node(name, Node::Trees(items.into_iter().collect()))
    }

    /// Adds a child.
    fn node(mut self, name: &'static str, node: Node) -> Self {
        self.0.push((name, node));
        self
    }
}

impl Serialize for Tree {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut map = to.serialize_map(Some(self.0.len()))?;
        for (name, node) in &self.0 {
            match node {
                Node::Text(text) => map.serialize_entry(name, text)?,
                Node::Tree(tree) => map.serialize_entry(name, tree)?,
                Node::Trees(items) => map.serialize_entry(name, items)?,
            }
        }
        map.end()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ec2::wire::{action::Action, xml::response};

    #[test]
    fn trees_become_elements() {
        let tag = |key: &str| Tree::default().text("key", key).some("value", Some("<"));
        let tree = Tree::default()
            .text("a", true)
            .some("none", None::<String>)
            .tree("b", Tree::default().text("c", 1))
            .set("tagSet", [tag("x"), tag("y")])
            .set("empty", []);
        let document = response(Action::DescribeTags, "r", &tree).unwrap();
        let expected = "<requestId>r</requestId><a>true</a><b><c>1</c></b><tagSet><item><key>x</key><value>&lt;</value></item>\
                        <item><key>y</key><value>&lt;</value></item></tagSet><empty/>";
        assert!(document.contains(expected), "{document}");
    }
}
