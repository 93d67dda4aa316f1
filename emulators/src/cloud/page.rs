//! Pages: how much of a list one reply holds, and where the next begins.
//!
//! A token names the list it is of and a [`PagePosition`]; positions are numbers that only grow along a list.

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};

/// No list has a position beyond it, so that the next one can always be counted.
const LAST: u64 = 1 << 62;

/// The page that is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PageRequest {
    pub(crate) most: usize,
    pub(crate) place: PagePosition,
    pub(crate) page_fault: PageFault,
}

/// Where a page begins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct PagePosition {
    /// After this position.
    pub(crate) after: u64,
    /// So many pages came before it, so that no two tokens of a walk are the same.
    pub(crate) page: u64,
}

/// What goes wrong with a page.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PageFault {
    /// Nothing.
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
    /// Where the next page begins, if there may be one.
    pub(crate) next: Option<PagePosition>,
}

impl PageRequest {
    /// Takes a page from `items`, which begin after the wanted position; also tells how many it
    /// records_read. An item that is not selected is nothing.
    pub(crate) fn take<T>(&self, items: impl Iterator<Item = (u64, Option<T>)>) -> (Page<T>, u64) {
        let (mut taken, mut records_read, mut last) = (Vec::new(), 0, self.place.after);
        let mut items = items.peekable();
        let next = |after| PagePosition {
            after,
            page: self.place.page.saturating_add(1),
        };
        match self.page_fault {
            PageFault::Empty => {
                let next = Some(next(last));
                return (Page { items: taken, next }, 0);
            }
            PageFault::None | PageFault::Repeated => {}
        }
        while taken.len() < self.most {
            let Some((position, item)) = items.next() else {
                break;
            };
            last = position;
            records_read += 1;
            taken.extend(item);
        }
        let next = match self.page_fault {
            PageFault::Repeated => Some(self.place),
            PageFault::None | PageFault::Empty => items.peek().map(|_| next(last)),
        };
        (Page { items: taken, next }, records_read)
    }
}

impl PagePosition {
    /// A place as a client sees it, in the list `of`.
    pub(crate) fn token(self, of: &str) -> String {
        URL_SAFE_NO_PAD.encode(format!("{of}:{}:{}", self.after, self.page))
    }

    /// The place that a token of the list `of` stands for.
    pub(crate) fn from_token(of: &str, token: &str) -> Option<Self> {
        let bytes = URL_SAFE_NO_PAD.decode(token).ok()?;
        let text = String::from_utf8(bytes).ok()?;
        let mut parts = text.rsplitn(3, ':');
        let page = parts.next()?.parse().ok()?;
        let after = parts.next()?.parse().ok()?;
        (parts.next()? == of && after <= LAST).then_some(Self { after, page })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn take(most: usize, after: u64, page_fault: PageFault) -> (Vec<u64>, Option<(u64, u64)>, u64) {
        let place = PagePosition { after, page: 6 };
        let paging = PageRequest {
            most,
            place,
            page_fault,
        };
        let odd = |n: u64| (n, (n % 2 == 1).then_some(n));
        let (page, records_read) = paging.take((after + 1..=9).map(odd));
        let next = page.next.map(|next| (next.after, next.page));
        (page.items, next, records_read)
    }

    #[test]
    fn pages_cover_a_list_and_tell_what_they_touch() {
        assert_eq!(take(2, 0, PageFault::None), (vec![1, 3], Some((3, 7)), 3));
        assert_eq!(take(2, 3, PageFault::None), (vec![5, 7], Some((7, 7)), 4));
        assert_eq!(take(2, 7, PageFault::None), (vec![9], None, 2));
        assert_eq!(take(9, 9, PageFault::None), (vec![], None, 0));
        assert_eq!(take(2, 3, PageFault::Empty), (vec![], Some((3, 7)), 0));
        assert_eq!(
            take(2, 3, PageFault::Repeated),
            (vec![5, 7], Some((3, 6)), 4)
        );
    }

    #[test]
    fn tokens_are_of_one_list() {
        let place = |after| PagePosition { after, page: 3 };
        let made = place(77).token("DescribeTags");
        assert_eq!(
            PagePosition::from_token("DescribeTags", &made),
            Some(place(77))
        );
        let colon = place(7).token("a:b");
        assert_eq!(PagePosition::from_token("a:b", &colon), Some(place(7)));
        let beyond = [LAST + 1, u64::MAX].map(|after| place(after).token("DescribeTags"));
        let other = place(77).token("DescribeVolumes");
        for bad in ["", "!", "zzzz", &made[1..], &other, &beyond[0], &beyond[1]] {
            assert_eq!(PagePosition::from_token("DescribeTags", bad), None, "{bad}");
        }
    }
}
