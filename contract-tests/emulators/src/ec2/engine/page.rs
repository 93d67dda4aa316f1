//! Pages: how much of a list one reply holds, and where the next begins.
//!
//! A token names the action and a position; positions are numbers that only grow along a list.

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};

use crate::ec2::error::Refusal;

/// No list has a position beyond it, so that the next one can always be counted.
const LAST: u64 = 1 << 62;

/// The page that is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Paging {
    pub(crate) most: usize,
    pub(crate) after: u64,
    pub(crate) trick: Trick,
}

/// What goes wrong with a page.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Trick {
    #[default]
    None,
    /// It is empty, and its token leads on to what it should have held.
    Empty,
    /// Its token is the one it was asked for with.
    Repeated,
}

/// A part of a list.
#[derive(Debug)]
pub(crate) struct Page<T> {
    pub(crate) items: Vec<T>,
    /// After which position the next page begins, if there may be one.
    pub(crate) next: Option<u64>,
}

impl Paging {
    /// Takes a page from `items`, which begin after the wanted position; also tells how many it
    /// touched. An item that is not selected is nothing.
    pub(crate) fn take<T>(&self, items: impl Iterator<Item = (u64, Option<T>)>) -> (Page<T>, u64) {
        let (mut taken, mut touched, mut last) = (Vec::new(), 0, self.after);
        let mut items = items.peekable();
        match self.trick {
            Trick::Empty => {
                let next = Some(self.after);
                return (Page { items: taken, next }, 0);
            }
            Trick::None | Trick::Repeated => {}
        }
        while taken.len() < self.most {
            let Some((position, item)) = items.next() else {
                break;
            };
            last = position;
            touched += 1;
            taken.extend(item);
        }
        let next = match self.trick {
            Trick::Repeated => Some(self.after),
            Trick::None | Trick::Empty => items.peek().map(|_| last),
        };
        (Page { items: taken, next }, touched)
    }
}

/// A position as a client sees it.
pub(crate) fn token(action: &str, position: u64) -> String {
    URL_SAFE_NO_PAD.encode(format!("{action}:{position}"))
}

/// The position that a token of this action stands for.
pub(crate) fn position(action: &str, token: &str) -> Result<u64, Refusal> {
    let bytes = URL_SAFE_NO_PAD.decode(token).ok();
    let text = bytes.and_then(|bytes| String::from_utf8(bytes).ok());
    let position = text.as_deref().and_then(|text| {
        let (of, position) = text.split_once(':')?;
        let position = position.parse().ok()?;
        (of == action && position <= LAST).then_some(position)
    });
    position.ok_or_else(|| {
        let message = "The specified pagination token is not valid or has expired.";
        Refusal::client("InvalidPaginationToken", message)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn take(most: usize, after: u64, trick: Trick) -> (Vec<u64>, Option<u64>, u64) {
        let paging = Paging { most, after, trick };
        let odd = |n: u64| (n, (n % 2 == 1).then_some(n));
        let (page, touched) = paging.take((after + 1..=9).map(odd));
        (page.items, page.next, touched)
    }

    #[test]
    fn pages_cover_a_list_and_tell_what_they_touch() {
        assert_eq!(take(2, 0, Trick::None), (vec![1, 3], Some(3), 3));
        assert_eq!(take(2, 3, Trick::None), (vec![5, 7], Some(7), 4));
        assert_eq!(take(2, 7, Trick::None), (vec![9], None, 2));
        assert_eq!(take(9, 9, Trick::None), (vec![], None, 0));
        assert_eq!(take(2, 3, Trick::Empty), (vec![], Some(3), 0));
        assert_eq!(take(2, 3, Trick::Repeated), (vec![5, 7], Some(3), 4));
    }

    #[test]
    fn tokens_are_of_one_action() {
        let made = token("DescribeTags", 77);
        assert_eq!(position("DescribeTags", &made), Ok(77));
        let beyond = [
            token("DescribeTags", LAST + 1),
            token("DescribeTags", u64::MAX),
        ];
        let other = token("DescribeVolumes", 77);
        for bad in ["", "!", "zzzz", &made[1..], &other, &beyond[0], &beyond[1]] {
            let refusal = position("DescribeTags", bad).unwrap_err();
            assert_eq!(refusal.code, "InvalidPaginationToken", "{bad}");
        }
    }
}
