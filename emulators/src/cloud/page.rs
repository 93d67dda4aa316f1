//! Pages: how many items of a list one response has, and where the next page begins.
//!
//! A token names its list and a [`PagePosition`]. Positions are numbers that only grow along a
//! list.

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};

/// The last position of a list, so that adding one never overflows.
const LAST: u64 = 1 << 62;

/// The page that a client requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PageRequest {
    pub(crate) limit: usize,
    pub(crate) position: PagePosition,
    pub(crate) page_fault: PageFault,
}

/// The position where a page begins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct PagePosition {
    /// The page begins after this position.
    pub(crate) after: u64,
    /// The number of pages before it, which makes all tokens of a walk different.
    pub(crate) page: u64,
}

/// The injected fault of a page.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PageFault {
    /// No fault.
    #[default]
    None,
    /// The page is empty, and its token leads to the items that it should have had.
    Empty,
    /// The page returns the token that it was requested with.
    Repeated,
}

/// One page of a list.
#[derive(Debug)]
pub(crate) struct Page<T> {
    pub(crate) items: Vec<T>,
    /// The position of the next page, if there may be one.
    pub(crate) next: Option<PagePosition>,
}

impl PageRequest {
    /// Takes a page from `items`, which begin after the requested position. `None` is an item that
    /// the filter does not select. Also returns how many items were read.
    pub(crate) fn take<T>(&self, items: impl Iterator<Item = (u64, Option<T>)>) -> (Page<T>, u64) {
        let (mut taken, mut records_read, mut last) = (Vec::new(), 0, self.position.after);
        let mut items = items.peekable();
        let next = |after| PagePosition {
            after,
            page: self.position.page.saturating_add(1),
        };
        match self.page_fault {
            PageFault::Empty => {
                let next = Some(next(last));
                return (Page { items: taken, next }, 0);
            }
            PageFault::None | PageFault::Repeated => {}
        }
        while taken.len() < self.limit {
            let Some((position, item)) = items.next() else {
                break;
            };
            last = position;
            records_read += 1;
            taken.extend(item);
        }
        let next = match self.page_fault {
            PageFault::Repeated => Some(self.position),
            PageFault::None | PageFault::Empty => items.peek().map(|_| next(last)),
        };
        (Page { items: taken, next }, records_read)
    }
}

impl PagePosition {
    /// Returns the token of a position in a list.
    pub(crate) fn token(self, list: &str) -> String {
        URL_SAFE_NO_PAD.encode(format!("{list}:{}:{}", self.after, self.page))
    }

    /// Returns the position of a token, or `None` if it is not a token of this list.
    pub(crate) fn from_token(list: &str, token: &str) -> Option<Self> {
        let bytes = URL_SAFE_NO_PAD.decode(token).ok()?;
        let text = String::from_utf8(bytes).ok()?;
        let mut parts = text.rsplitn(3, ':');
        let page = parts.next()?.parse().ok()?;
        let after = parts.next()?.parse().ok()?;
        (parts.next()? == list && after <= LAST).then_some(Self { after, page })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn take(
        limit: usize,
        after: u64,
        page_fault: PageFault,
    ) -> (Vec<u64>, Option<(u64, u64)>, u64) {
        let position = PagePosition { after, page: 6 };
        let paging = PageRequest {
            limit,
            position,
            page_fault,
        };
        let odd = |n: u64| (n, (n % 2 == 1).then_some(n));
        let (page, records_read) = paging.take((after + 1..=9).map(odd));
        let next = page.next.map(|next| (next.after, next.page));
        (page.items, next, records_read)
    }

    #[test]
    fn pages_cover_a_list_and_count_the_items_read() {
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
    fn token_is_valid_for_one_list() {
        let position = |after| PagePosition { after, page: 3 };
        let token = position(77).token("DescribeTags");
        assert_eq!(
            PagePosition::from_token("DescribeTags", &token),
            Some(position(77))
        );
        let colon = position(7).token("a:b");
        assert_eq!(PagePosition::from_token("a:b", &colon), Some(position(7)));
        let beyond = [LAST + 1, u64::MAX].map(|after| position(after).token("DescribeTags"));
        let other = position(77).token("DescribeVolumes");
        for bad in ["", "!", "zzzz", &token[1..], &other, &beyond[0], &beyond[1]] {
            assert_eq!(PagePosition::from_token("DescribeTags", bad), None, "{bad}");
        }
    }
}
