//! Parses request JSON strictly, so that the gate and the provider cannot read it differently, and
//! within limits.

use std::cell::Cell;
use std::fmt;

use serde::Deserializer;
use serde::de::{DeserializeSeed, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

/// The maximum number of values in a request, including nested ones.
pub(super) const MAX_VALUES: usize = 250_000;
/// The memory overhead of a value in addition to its text, in bytes.
const BYTES_PER_VALUE: usize = 128;

/// A parsed document and an upper estimate of its memory use.
#[derive(Debug)]
pub(super) struct ParsedJson {
    pub(super) value: Value,
    pub(super) bytes: usize,
}

/// The reason a document is rejected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum JsonFault {
    Malformed,
    /// An object has a duplicate key, and parsers disagree about which value applies.
    DuplicateKey,
    TooManyValues,
}

/// Parses a complete document.
pub(super) fn parse(text: &[u8]) -> Result<ParsedJson, JsonFault> {
    let count = JsonValueBudget {
        remaining: Cell::new(MAX_VALUES),
        fault: Cell::new(JsonFault::Malformed),
    };
    let mut deserializer = serde_json::Deserializer::from_slice(text);
    let parsed = BudgetedJsonSeed(&count).deserialize(&mut deserializer);
    let value = parsed.map_err(|_| count.fault.get())?;
    deserializer.end().map_err(|_| JsonFault::Malformed)?;
    let values = MAX_VALUES - count.remaining.get();
    Ok(ParsedJson {
        value,
        bytes: values * BYTES_PER_VALUE + text.len(),
    })
}

struct JsonValueBudget {
    remaining: Cell<usize>,
    fault: Cell<JsonFault>,
}

#[derive(Clone, Copy)]
struct BudgetedJsonSeed<'a>(&'a JsonValueBudget);

impl BudgetedJsonSeed<'_> {
    fn fail<E: serde::de::Error>(self, fault: JsonFault) -> E {
        self.0.fault.set(fault);
        E::custom("not accepted")
    }
}

impl<'de> DeserializeSeed<'de> for BudgetedJsonSeed<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        let Some(left) = self.0.remaining.get().checked_sub(1) else {
            return Err(self.fail(JsonFault::TooManyValues));
        };
        self.0.remaining.set(left);
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for BudgetedJsonSeed<'_> {
    type Value = Value;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }

    fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<Value, E> {
        let number = Number::from_f64(value);
        number
            .map(Value::Number)
            .ok_or_else(|| E::custom("not a number"))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::String(value.to_owned()))
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(Value::String(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<Value, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = access.next_element_seed(self)? {
            items.push(item);
        }
        Ok(Value::Array(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Value, A::Error> {
        let mut entries = Map::new();
        while let Some(key) = access.next_key::<String>()? {
            let value = access.next_value_seed(self)?;
            if entries.insert(key, value).is_some() {
                return Err(self.fail(JsonFault::DuplicateKey));
            }
        }
        Ok(Value::Object(entries))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_the_same_as_serde_json() {
        let text = br#" {"a":[1,-2,3.5,"x\u00e9",null,true,{"b":{}}],"c":18446744073709551615} "#;
        let parsed = parse(text).unwrap();
        let expected: Value = serde_json::from_slice(text).unwrap();
        assert_eq!(parsed.value, expected);
        assert!(parsed.bytes >= text.len() + 10 * BYTES_PER_VALUE);
    }

    #[test]
    fn ambiguous_and_oversized_texts_are_refused() {
        for (text, fault) in [
            ("{\"a\":1,\"a\":1}".to_owned(), JsonFault::DuplicateKey),
            (
                "{\"b\":[{\"a\":1,\"\\u0061\":2}]}".to_owned(),
                JsonFault::DuplicateKey,
            ),
            ("{\"a\":1}{}".to_owned(), JsonFault::Malformed),
            ("{\"a\":NaN}".to_owned(), JsonFault::Malformed),
            ("{\"a\":1e999}".to_owned(), JsonFault::Malformed),
            (String::new(), JsonFault::Malformed),
            (
                format!("[{}0]", "0,".repeat(MAX_VALUES)),
                JsonFault::TooManyValues,
            ),
            (
                format!("{}{}", "[".repeat(1000), "]".repeat(1000)),
                JsonFault::Malformed,
            ),
        ] {
            let found = parse(text.as_bytes()).unwrap_err();
            assert_eq!(found, fault, "{}", &text[..text.len().min(40)]);
        }
    }
}
