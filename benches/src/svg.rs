//! Pictures of the rows: one file for each operation, with a bar for each variant.
//!
//! The writer is made by hand: a picture is a few rectangles and lines of text, and a crate for charts would add more to the
//! build than this file has lines. Bars begin at zero, so that their lengths compare as the numbers do.

use std::{fmt::Write as _, fs, io, path::Path};

use crate::{
    measure::{Amount, Row},
    report::{operations, shown, shown_time},
};

const BAR: usize = 18;
const STEP: usize = 26;
const LEFT: usize = 260;
const LONGEST: f64 = 420.0;
const WIDTH: usize = 800;

/// Writes a file for each operation into a folder, which is created if needed. A file has the names of group and operation.
///
/// # Errors
///
/// If the folder or a file cannot be written.
pub fn write(rows: &[Row], folder: &Path) -> io::Result<()> {
    fs::create_dir_all(folder)?;
    for rows in operations(rows) {
        fs::write(folder.join(file_name(&rows[0])), picture(rows))?;
    }
    Ok(())
}

/// Returns the name of the picture of a row's operation.
pub fn file_name(row: &Row) -> String {
    let text = format!("{} {}", row.group, row.operation).to_lowercase();
    let words = text.split(|c: char| !c.is_ascii_alphanumeric());
    let words: Vec<_> = words.filter(|word| !word.is_empty()).collect();
    format!("{}.svg", words.join("-"))
}

/// Returns the picture of one operation: times, or the first further column if no time was measured.
fn picture(rows: &[Row]) -> String {
    let timed = rows.iter().any(|row| row.median_ns > 0.0);
    let bars: Vec<(&str, f64, String)> = rows
        .iter()
        .map(|row| {
            let name = row.variant.as_str();
            match row.details.first() {
                Some((_, amount)) if !timed => (name, value(*amount), shown(*amount)),
                _ => (name, row.median_ns, shown_time(row.median_ns)),
            }
        })
        .collect();
    let longest = bars.iter().map(|(_, value, _)| *value).fold(0.0, f64::max);
    let height = 40 + STEP * bars.len();
    let mut text = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}\" height=\"{height}\" font-family=\"sans-serif\" font-size=\"13\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n<text x=\"10\" y=\"22\" font-weight=\"bold\">{}: {}</text>\n",
        rows[0].group,
        escaped(&rows[0].operation)
    );
    for (at, (name, value, label)) in bars.into_iter().enumerate() {
        let (top, length) = (
            36 + at * STEP,
            LONGEST * value / longest.max(f64::MIN_POSITIVE),
        );
        let (base, end) = (top + 14, length + 10.0);
        let color = if at == 0 { "#888888" } else { "#3366aa" };
        let _ = write!(
            text,
            "<text x=\"{}\" y=\"{base}\" text-anchor=\"end\">{}</text>\n\
             <rect x=\"{LEFT}\" y=\"{top}\" width=\"{length:.1}\" height=\"{BAR}\" fill=\"{color}\"/>\n\
             <text x=\"{LEFT}\" y=\"{base}\" dx=\"{end:.1}\">{label}</text>\n",
            LEFT - 8,
            escaped(name)
        );
    }
    text.push_str("</svg>\n");
    text
}

/// Returns an amount as a length.
const fn value(amount: Amount) -> f64 {
    match amount {
        Amount::Count(value) | Amount::Nanoseconds(value) => value,
        #[expect(clippy::cast_precision_loss, reason = "a length of some pixels")]
        Amount::Bytes(bytes) => bytes as f64,
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(variant: &str, median_ns: f64) -> Row {
        Row {
            group: "list",
            operation: "EC2, 10000 <instances>".to_owned(),
            variant: variant.to_owned(),
            median_ns,
            ..Row::default()
        }
    }

    #[test]
    fn bar_is_as_long_as_its_time_says() {
        let picture = picture(&[row("raw", 100.0), row("twice", 200.0)]);
        assert!(picture.contains("width=\"210.0\""), "{picture}");
        assert!(picture.contains("width=\"420.0\""), "{picture}");
        assert!(picture.contains("&lt;instances>"), "{picture}");
    }

    #[test]
    fn file_name_has_only_letters_digits_and_hyphens() {
        assert_eq!(file_name(&row("raw", 1.0)), "list-ec2-10000-instances.svg");
    }
}
