//! Telemetry as protobuf: only the fields that are added up.

use super::point::MeasuredPoint;

/// A field of a message.
enum Field<'a> {
    Number(u64),
    Fixed(u64),
    Bytes(&'a [u8]),
}

/// Decodes metrics.
pub(super) fn metrics(body: &[u8]) -> Option<Vec<MeasuredPoint>> {
    let mut points = Vec::new();
    for resource in messages(body, 1)? {
        for scope in messages(resource, 2)? {
            for metric in messages(scope, 2)? {
                add_metric(metric, &mut points)?;
            }
        }
    }
    Some(points)
}

fn add_metric(metric: &[u8], points: &mut Vec<MeasuredPoint>) -> Option<()> {
    let fields = fields(metric)?;
    let name = fields.iter().find_map(|field| match field {
        (1, Field::Bytes(name)) => Some(String::from_utf8_lossy(name).into_owned()),
        _ => None,
    })?;
    for (number, field) in fields {
        // 5 is a gauge, 7 a sum, 9 a histogram.
        if let (5 | 7 | 9, Field::Bytes(data)) = (number, field) {
            add_points(&name, data, points)?;
        }
    }
    Some(())
}

fn add_points(name: &str, data: &[u8], points: &mut Vec<MeasuredPoint>) -> Option<()> {
    let fields = fields(data)?;
    let is_delta = fields
        .iter()
        .any(|field| matches!(field, (2, Field::Number(1))));
    for (number, field) in fields {
        if let (1, Field::Bytes(point)) = (number, field) {
            add_point(name, point, is_delta, points)?;
        }
    }
    Some(())
}

/// Adds a data point: of a number, field 4 is a double, 6 an integer and 7 an attribute; of a histogram, 4 is the
/// count, 5 the sum and 9 an attribute.
fn add_point(
    name: &str,
    point: &[u8],
    is_delta: bool,
    points: &mut Vec<MeasuredPoint>,
) -> Option<()> {
    let (mut value, mut sum, mut attributes) = (None, None, Vec::new());
    for (number, field) in fields(point)? {
        match (number, field) {
            (4, Field::Fixed(bits)) => value = Some(f64::from_bits(bits)),
            (6, Field::Fixed(bits)) => value = Some(integer(bits)),
            (5, Field::Fixed(bits)) => sum = Some(f64::from_bits(bits)),
            (7 | 9, Field::Bytes(pair)) => add_attribute(pair, &mut attributes)?,
            (_, Field::Number(_) | Field::Fixed(_) | Field::Bytes(_)) => {}
        }
    }
    points.extend(sum.or(value).map(|value| MeasuredPoint {
        metric: name.to_owned(),
        attributes,
        value,
        is_delta,
    }));
    Some(())
}

#[expect(
    clippy::cast_precision_loss,
    reason = "measurements are floating-point numbers"
)]
fn integer(bits: u64) -> f64 {
    bits.cast_signed() as f64
}

/// Decodes the names of log records: their event name, or else their text.
pub(super) fn log_names(body: &[u8]) -> Option<Vec<String>> {
    let mut names = Vec::new();
    for resource in messages(body, 1)? {
        for scope in messages(resource, 2)? {
            for record in messages(scope, 2)? {
                add_log_name(record, &mut names)?;
            }
        }
    }
    Some(names)
}

fn add_log_name(record: &[u8], names: &mut Vec<String>) -> Option<()> {
    let (mut event, mut body) = (None, None);
    for (number, field) in fields(record)? {
        match (number, field) {
            (12, Field::Bytes(name)) if !name.is_empty() => event = Some(name),
            (5, Field::Bytes(value)) => set_text(value, &mut body)?,
            (_, Field::Number(_) | Field::Fixed(_) | Field::Bytes(_)) => {}
        }
    }
    let name = event.or(body);
    names.extend(name.map(|name| String::from_utf8_lossy(name).into_owned()));
    Some(())
}

/// Adds an attribute if it has a text.
fn add_attribute(pair: &[u8], attributes: &mut Vec<(String, String)>) -> Option<()> {
    let (mut key, mut text) = (None, None);
    for (number, field) in fields(pair)? {
        match (number, field) {
            (1, Field::Bytes(name)) => key = Some(name),
            (2, Field::Bytes(value)) => set_text(value, &mut text)?,
            (_, Field::Number(_) | Field::Fixed(_) | Field::Bytes(_)) => {}
        }
    }
    let decode = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    attributes.extend(key.zip(text).map(|(key, text)| (decode(key), decode(text))));
    Some(())
}

/// Sets `text` to the text of a value; to none if the value has another type.
fn set_text<'a>(value: &'a [u8], text: &mut Option<&'a [u8]>) -> Option<()> {
    let mut fields = fields(value)?.into_iter();
    *text = fields.find_map(|field| match field {
        (1, Field::Bytes(text)) => Some(text),
        _ => None,
    });
    Some(())
}

/// Returns the messages of a repeated field.
fn messages(message: &[u8], wanted: u64) -> Option<Vec<&[u8]>> {
    let fields = fields(message)?.into_iter();
    let messages = fields.filter_map(|(number, field)| match field {
        Field::Bytes(bytes) if number == wanted => Some(bytes),
        Field::Bytes(_) | Field::Number(_) | Field::Fixed(_) => None,
    });
    Some(messages.collect())
}

/// Splits a message into its fields. Returns `None` if it is not valid.
fn fields(mut rest: &[u8]) -> Option<Vec<(u64, Field<'_>)>> {
    let mut fields = Vec::new();
    while !rest.is_empty() {
        let key = varint(&mut rest)?;
        let field = match key & 7 {
            0 => Field::Number(varint(&mut rest)?),
            1 => Field::Fixed(u64::from_le_bytes(*take(&mut rest, 8)?.as_array()?)),
            2 => {
                // A length beyond memory is beyond the message, too.
                let length = usize::try_from(varint(&mut rest)?).unwrap_or(usize::MAX);
                Field::Bytes(take(&mut rest, length)?)
            }
            5 => {
                take(&mut rest, 4)?;
                continue;
            }
            _ => return None,
        };
        fields.push((key >> 3, field));
    }
    Some(fields)
}

fn take<'a>(rest: &mut &'a [u8], length: usize) -> Option<&'a [u8]> {
    let (taken, left) = rest.split_at_checked(length)?;
    *rest = left;
    Some(taken)
}

fn varint(rest: &mut &[u8]) -> Option<u64> {
    let mut value = 0_u64;
    for shift in (0..64).step_by(7) {
        let byte = take(rest, 1)?[0];
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(number: u8, value: &[u8]) -> Vec<u8> {
        let mut field = vec![number << 3 | 2, u8::try_from(value.len()).unwrap()];
        field.extend(value);
        field
    }

    fn fixed(number: u8, value: u64) -> Vec<u8> {
        let mut field = vec![number << 3 | 1];
        field.extend(value.to_le_bytes());
        field
    }

    #[test]
    fn a_sum_is_decoded() {
        let text = bytes(1, b"input");
        let attribute = [bytes(1, b"type"), bytes(2, &text)].concat();
        let point = [fixed(4, 2.5_f64.to_bits()), bytes(7, &attribute)].concat();
        let sum = [bytes(1, &point), vec![2 << 3, 1]].concat();
        let metric = [bytes(1, b"token.usage"), bytes(7, &sum)].concat();
        let body = bytes(1, &bytes(2, &bytes(2, &metric)));
        let expected = MeasuredPoint {
            metric: "token.usage".into(),
            attributes: vec![("type".into(), "input".into())],
            value: 2.5,
            is_delta: true,
        };
        assert_eq!(metrics(&body), Some(vec![expected]));
        for end in 1..body.len() {
            // An incomplete message is refused, or has fewer points; it never panics.
            let _decoded = metrics(&body[..end]);
        }
    }

    #[test]
    fn names_of_log_records_are_decoded() {
        let named = bytes(12, b"api_request");
        let with_body = bytes(5, &bytes(1, b"claude_code.tool_result"));
        let scope = [bytes(2, &named), bytes(2, &with_body)].concat();
        let body = bytes(1, &bytes(2, &scope));
        let expected = ["api_request", "claude_code.tool_result"];
        assert_eq!(log_names(&body), Some(expected.map(str::to_owned).into()));
        assert_eq!(log_names(b"\xff\xff"), None);
    }
}
