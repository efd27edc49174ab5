//! The spellings in which programs print a secret.

use std::fmt::Write as _;

use zeroize::Zeroizing;

use super::needles::MIN_SECRET_BYTES;

/// One spelling of a secret, wiped on drop.
pub(super) type EncodedSecret = Zeroizing<Vec<u8>>;

/// Returns every spelling to search for, of the secret and of each of its lines.
pub(super) fn encodings(secret: &str) -> Vec<EncodedSecret> {
    let mut forms = text_encodings(secret);
    for line in secret_lines(secret) {
        forms.extend(text_encodings(line));
    }
    forms.retain(|form| form.len() >= MIN_SECRET_BYTES);
    forms.sort_unstable_by(|a, b| a.as_slice().cmp(b));
    forms.dedup();
    forms
}

/// Returns the lines of a multi-line secret that are hidden individually.
///
/// Line breaks may be written as a backslash and an `n`. The markers around a key are not secret.
fn secret_lines(secret: &str) -> impl Iterator<Item = &str> {
    secret
        .split('\n')
        .flat_map(|line| line.split("\\n"))
        .map(str::trim)
        .filter(move |line| line.len() >= MIN_SECRET_BYTES && *line != secret)
        .filter(|line| !line.starts_with("-----BEGIN") && !line.starts_with("-----END"))
}

fn text_encodings(text: &str) -> Vec<EncodedSecret> {
    let mut all = vec![text.to_owned()];
    all.extend(base64_encodings(text.as_bytes()));
    all.extend([
        hex(text.as_bytes(), HexCase::Lower),
        hex(text.as_bytes(), HexCase::Upper),
    ]);
    all.extend(percent_encodings(text));
    all.extend(json_encodings(text));
    all.extend(xml_encodings(text));
    all.extend(shell_encodings(text));
    all.into_iter()
        .map(|form| Zeroizing::new(form.into_bytes()))
        .collect()
}

const STANDARD: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
const URL_SAFE: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/// The line lengths of `openssl` and PEM, and of `base64` and MIME.
const WRAPS: [usize; 2] = [64, 76];

fn base64_encodings(bytes: &[u8]) -> Vec<String> {
    let mut forms = Vec::new();
    for alphabet in [STANDARD, URL_SAFE] {
        let whole = base64(bytes, alphabet);
        let padded = format!("{whole}{}", "=".repeat((4 - whole.len() % 4) % 4));
        // Text after the secret, such as a line feed, changes its last digits.
        let open = base64_inside(bytes, 0, alphabet);
        for width in WRAPS.into_iter().filter(|width| whole.len() > *width) {
            for text in [&whole, &padded, &open] {
                forms.extend(wrapped_lines(text, width));
            }
        }
        forms.extend([whole, padded, open]);
        forms.extend([1, 2].map(|offset| base64_inside(bytes, offset, alphabet)));
    }
    forms
}

/// Returns the digits that do not depend on the text before and after the bytes, if the bytes start
/// at `offset` in a group of three.
fn base64_inside(bytes: &[u8], offset: usize, alphabet: &[u8; 64]) -> String {
    let mut shifted = Zeroizing::new(vec![0; offset]);
    shifted.extend_from_slice(bytes);
    let whole = Zeroizing::new(base64(&shifted, alphabet));
    let first = (8 * offset).div_ceil(6);
    let end = 8 * shifted.len() / 6;
    whole[first..end].to_owned()
}

fn base64(bytes: &[u8], alphabet: &[u8; 64]) -> String {
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for group in bytes.chunks(3) {
        let mut bits = 0;
        for index in 0..3 {
            bits = bits << 8 | usize::from(group.get(index).copied().unwrap_or(0));
        }
        for digit in 0..=group.len() {
            text.push(char::from(alphabet[bits >> (18 - 6 * digit) & 63]));
        }
    }
    text
}

fn wrapped_lines(text: &str, width: usize) -> Vec<String> {
    text.as_bytes()
        .chunks(width)
        .map(|piece| String::from_utf8_lossy(piece).into_owned())
        .collect()
}

#[derive(Clone, Copy)]
enum HexCase {
    Lower,
    Upper,
}

impl HexCase {
    fn push(self, text: &mut String, value: u32, width: usize) {
        match self {
            Self::Lower => write!(text, "{value:0width$x}"),
            Self::Upper => write!(text, "{value:0width$X}"),
        }
        .expect("writing to a string cannot fail");
    }
}

fn hex(bytes: &[u8], digits: HexCase) -> String {
    let mut text = String::with_capacity(2 * bytes.len());
    for byte in bytes {
        digits.push(&mut text, u32::from(*byte), 2);
    }
    text
}

/// The characters that RFC 3986 libraries, `encodeURIComponent`, forms and `encodeURI` preserve.
const URL_UNESCAPED: [&[u8]; 4] = [b"-_.~", b"-_.~!'()*", b"-_.*", b"-_.~!'()*;/?:@&=+$,#"];

fn percent_encodings(text: &str) -> Vec<String> {
    let mut forms = Vec::new();
    for digits in [HexCase::Lower, HexCase::Upper] {
        for kept in URL_UNESCAPED {
            let plain = |byte: u8| byte.is_ascii_alphanumeric() || kept.contains(&byte);
            forms.push(percent(text, digits, plain));
        }
        forms.push(percent(text, digits, |_| false));
        let form = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.* ".contains(&byte);
        forms.push(percent(text, digits, form).replace(' ', "+"));
    }
    forms
}

fn percent(text: &str, digits: HexCase, kept: impl Fn(u8) -> bool) -> String {
    let mut encoded = String::new();
    for byte in text.bytes() {
        if kept(byte) {
            encoded.push(char::from(byte));
        } else {
            encoded.push('%');
            digits.push(&mut encoded, u32::from(byte), 2);
        }
    }
    encoded
}

fn json_encodings(text: &str) -> Vec<String> {
    let minimal = json(text, HexCase::Lower, |_| false);
    let mut forms = vec![minimal.replace('/', "\\/"), minimal];
    for digits in [HexCase::Lower, HexCase::Upper] {
        forms.push(json(text, digits, |c| !c.is_ascii()));
        forms.push(json(text, digits, |c| matches!(c, '<' | '>' | '&' | '\'')));
        forms.push(json(text, digits, |c| matches!(c, '<' | '>' | '&')));
        forms.push(json(text, digits, |_| true));
    }
    forms
}

fn json(text: &str, digits: HexCase, by_number: impl Fn(char) -> bool) -> String {
    let mut escaped = String::new();
    for c in text.chars() {
        match c {
            c if by_number(c) => push_units(&mut escaped, c, digits),
            '"' => escaped.push_str("\\\""),
            '\\' => escaped.push_str("\\\\"),
            '\n' => escaped.push_str("\\n"),
            '\r' => escaped.push_str("\\r"),
            '\t' => escaped.push_str("\\t"),
            '\u{8}' => escaped.push_str("\\b"),
            '\u{c}' => escaped.push_str("\\f"),
            c if c.is_ascii_control() && c != '\u{7f}' => push_units(&mut escaped, c, digits),
            c => escaped.push(c),
        }
    }
    escaped
}

fn push_units(text: &mut String, c: char, digits: HexCase) {
    for unit in c.encode_utf16(&mut [0; 2]) {
        text.push_str("\\u");
        digits.push(text, u32::from(*unit), 4);
    }
}

/// The common escapes of the double and the single quote.
const XML_QUOTES: [[&str; 2]; 5] = [
    ["\"", "'"],
    ["&quot;", "'"],
    ["&quot;", "&apos;"],
    ["&quot;", "&#x27;"],
    ["&#34;", "&#39;"],
];

fn xml_encodings(text: &str) -> Vec<String> {
    let escaped = text
        .replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;");
    let mut forms: Vec<String> = XML_QUOTES
        .iter()
        .map(|[double, single]| escaped.replace('"', double).replace('\'', single))
        .collect();
    forms.push(escaped.replace('"', "&quot;").replace('\'', "&#39;"));
    forms
}

fn shell_encodings(text: &str) -> Vec<String> {
    let backslashed = |special: fn(char) -> bool| {
        text.chars().fold(String::new(), |mut quoted, c| {
            if special(c) {
                quoted.push('\\');
            }
            quoted.push(c);
            quoted
        })
    };
    vec![
        text.replace('\'', r"'\''"),
        text.replace('\'', r#"'"'"'"#),
        backslashed(|c| matches!(c, '\\' | '"' | '$' | '`')),
        backslashed(|c| c.is_ascii() && !c.is_ascii_alphanumeric() && !"_/.:=@%+,-".contains(c)),
        backslashed(|c| matches!(c, '\\' | '\''))
            .replace('\n', "\\n")
            .replace('\r', "\\r")
            .replace('\t', "\\t"),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn has(secret: &str, form: &str) -> bool {
        encodings(secret)
            .iter()
            .any(|f| f.as_slice() == form.as_bytes())
    }

    #[test]
    fn finds_these_spellings_of_a_secret() {
        for (secret, form) in [
            ("hunter2hunter2", "hunter2hunter2"),
            ("hunter2hunter2", "aHVudGVyMmh1bnRlcjI="),
            ("hunter2hunter2", "aHVudGVyMmh1bnRlcjI"),
            // In `xhunter2hunter2x` and `xyhunter2hunter2xy`.
            ("hunter2hunter2", "h1bnRlcjJodW50ZXIy"),
            ("hunter2hunter2", "odW50ZXIyaHVudGVyM"),
            ("a?>b~~c?d>>", "YT8-Yn5-Yz9kPj4"),
            ("a?>b~~c?d>>", "YT8+Yn5+Yz9kPj4="),
            ("hunter2hunter2", "68756e7465723268756e74657232"),
            ("hunter2hunter2", "68756E7465723268756E74657232"),
            ("p@ss/w rd!", "p%40ss%2Fw%20rd%21"),
            ("p@ss/w rd!", "p%40ss%2fw%20rd%21"),
            ("p@ss/w rd!", "p%40ss%2Fw%20rd!"),
            ("p@ss/w rd!", "p%40ss%2Fw+rd%21"),
            ("p@ss/w rd!", "p@ss/w%20rd!"),
            ("password", "%70%61%73%73%77%6f%72%64"),
            ("password", "%70%61%73%73%77%6F%72%64"),
            ("pa\"ss\\w\nord/é", "pa\\\"ss\\\\w\\nord/é"),
            ("pa\"ss\\w\nord/é", "pa\\\"ss\\\\w\\nord\\/é"),
            ("pa\"ss\\w\nord/é", "pa\\\"ss\\\\w\\nord/\\u00e9"),
            ("pa\"ss\\w\nord/é", "pa\\\"ss\\\\w\\nord/\\u00E9"),
            ("pass<&>word", "pass\\u003c\\u0026\\u003eword"),
            ("pass\u{1F511}key", "pass\\ud83d\\udd11key"),
            (
                "password",
                "\\u0070\\u0061\\u0073\\u0073\\u0077\\u006f\\u0072\\u0064",
            ),
            ("a<b>\"c'&d", "a&lt;b&gt;\"c'&amp;d"),
            ("a<b>\"c'&d", "a&lt;b&gt;&quot;c&apos;&amp;d"),
            ("a<b>\"c'&d", "a&lt;b&gt;&#34;c&#39;&amp;d"),
            ("a<b>\"c'&d", "a&lt;b&gt;&quot;c&#x27;&amp;d"),
            ("it's$ecret", r"it'\''s$ecret"),
            ("it's$ecret", r#"it'"'"'s$ecret"#),
            ("it's$ecret", r"it's\$ecret"),
            ("it's$ecret", r"it\'s\$ecret"),
            ("first line\nsecond line", "second line"),
            ("first line\nsecond line", "first line\\nsecond line"),
            ("first line\\nsecond line", "second line"),
        ] {
            assert!(has(secret, form), "{secret:?} has no form {form:?}");
        }
    }

    #[test]
    fn long_base64_is_also_split_into_lines() {
        let secret = "0123456789".repeat(8);
        let whole = base64(secret.as_bytes(), STANDARD);
        assert_eq!(whole.len(), 107);
        for piece in [&whole[..76], &whole[76..], &whole[..64], &whole[64..]] {
            assert!(has(&secret, piece), "no form {piece:?}");
        }
    }

    #[test]
    fn markers_and_short_lines_are_not_secret() {
        let secret = "-----BEGIN RSA PRIVATE KEY-----\nshort\nMIIEogIBAAKCAQEA\n-----END RSA PRIVATE KEY-----";
        assert_eq!(
            secret_lines(secret).collect::<Vec<_>>(),
            ["MIIEogIBAAKCAQEA"]
        );
    }
}
