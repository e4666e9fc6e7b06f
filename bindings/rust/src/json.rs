// SPDX-License-Identifier: Apache-2.0
//! The configuration of a model as a parsed object: a small JSON parser for documents of the server.
use crate::error::Error;

/// A node of a configuration. Accessors return `None` for missing nodes and other types, so that they can be chained.
///
/// ```
/// use kelp_backend::Value;
///
/// let config = Value::parse(r#"{"max_batch_size":8,"input":[{"name":"IN","dims":["-1",3]}]}"#).unwrap();
/// assert_eq!(config["max_batch_size"].as_i64(), Some(8));
/// assert_eq!(config["input"][0]["name"].as_str(), Some("IN"));
/// assert_eq!(config["input"][0]["dims"][0].as_i64(), Some(-1));
/// assert_eq!(config["output"][0]["name"].as_str(), None);
/// ```
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// Null, or a missing node.
    Null,
    /// A boolean.
    Bool(bool),
    /// A number, as text.
    Number(String),
    /// A string.
    Text(String),
    /// An array.
    Array(Vec<Value>),
    /// An object, with its members in document order.
    Object(Vec<(String, Value)>),
}

const NULL: Value = Value::Null;

impl Value {
    /// Parses JSON.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let mut parser = Parser { text: text.as_bytes(), at: 0, depth: 0 };
        let value = parser.value()?;
        parser.space();
        if parser.at < parser.text.len() {
            return Err(parser.wrong("unexpected text after the end"));
        }
        Ok(value)
    }

    /// Returns a member of an object.
    pub fn get(&self, name: &str) -> Option<&Value> {
        match self {
            Self::Object(members) => members.iter().find(|(key, _)| key == name).map(|(_, value)| value),
            _ => None,
        }
    }

    /// Returns a string.
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }

    /// Returns an integer; also from a string, as protobuf writes 64-bit integers.
    pub fn as_i64(&self) -> Option<i64> {
        match self {
            Self::Number(text) | Self::Text(text) => text.parse().ok(),
            _ => None,
        }
    }

    /// Returns a number.
    pub fn as_f64(&self) -> Option<f64> {
        match self {
            Self::Number(text) => text.parse().ok(),
            _ => None,
        }
    }

    /// Returns a boolean.
    pub fn as_bool(&self) -> Option<bool> {
        match self {
            Self::Bool(value) => Some(*value),
            _ => None,
        }
    }

    /// Returns the elements of an array; empty for other types.
    pub fn items(&self) -> &[Value] {
        match self {
            Self::Array(items) => items,
            _ => &[],
        }
    }

    /// Returns the members of an object; empty for other types.
    pub fn members(&self) -> &[(String, Value)] {
        match self {
            Self::Object(members) => members,
            _ => &[],
        }
    }
}

impl std::ops::Index<&str> for Value {
    type Output = Value;

    fn index(&self, name: &str) -> &Value {
        self.get(name).unwrap_or(&NULL)
    }
}

impl std::ops::Index<usize> for Value {
    type Output = Value;

    fn index(&self, at: usize) -> &Value {
        self.items().get(at).unwrap_or(&NULL)
    }
}

const DEEPEST: usize = 100;

struct Parser<'a> {
    text: &'a [u8],
    at: usize,
    depth: usize,
}

impl Parser<'_> {
    fn wrong(&self, what: &str) -> Error {
        Error::invalid(format!("JSON: {what}, at byte {}", self.at))
    }

    fn space(&mut self) {
        while matches!(self.text.get(self.at), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    fn next_is(&mut self, byte: u8) -> bool {
        self.space();
        let found = self.text.get(self.at) == Some(&byte);
        self.at += usize::from(found);
        found
    }

    fn expect(&mut self, byte: u8) -> Result<(), Error> {
        if self.next_is(byte) {
            Ok(())
        } else {
            Err(self.wrong(&format!("expected '{}'", byte as char)))
        }
    }

    fn value(&mut self) -> Result<Value, Error> {
        self.space();
        if self.depth == DEEPEST {
            return Err(self.wrong("nested too deeply"));
        }
        self.depth += 1;
        let value = match self.text.get(self.at) {
            Some(b'{') => self.object(),
            Some(b'[') => self.array(),
            Some(b'"') => self.string().map(Value::Text),
            Some(b'-' | b'0'..=b'9') => self.number(),
            _ => self.word(),
        };
        self.depth -= 1;
        value
    }

    fn object(&mut self) -> Result<Value, Error> {
        let mut members = Vec::new();
        self.expect(b'{')?;
        while !self.next_is(b'}') {
            if !members.is_empty() {
                self.expect(b',')?;
                self.space();
            }
            let name = self.string()?;
            self.expect(b':')?;
            members.push((name, self.value()?));
        }
        Ok(Value::Object(members))
    }

    fn array(&mut self) -> Result<Value, Error> {
        let mut items = Vec::new();
        self.expect(b'[')?;
        while !self.next_is(b']') {
            if !items.is_empty() {
                self.expect(b',')?;
            }
            items.push(self.value()?);
        }
        Ok(Value::Array(items))
    }

    fn word(&mut self) -> Result<Value, Error> {
        for (word, value) in [("true", Value::Bool(true)), ("false", Value::Bool(false)), ("null", Value::Null)] {
            if self.text[self.at..].starts_with(word.as_bytes()) {
                self.at += word.len();
                return Ok(value);
            }
        }
        Err(self.wrong("expected a value"))
    }

    fn number(&mut self) -> Result<Value, Error> {
        let begin = self.at;
        while matches!(self.text.get(self.at), Some(b'-' | b'+' | b'.' | b'e' | b'E' | b'0'..=b'9')) {
            self.at += 1;
        }
        let text = String::from_utf8_lossy(&self.text[begin..self.at]).into_owned();
        match text.parse::<f64>() {
            Ok(_) => Ok(Value::Number(text)),
            Err(_) => Err(self.wrong("invalid number")),
        }
    }

    fn string(&mut self) -> Result<String, Error> {
        let mut bytes = Vec::new();
        self.expect(b'"')?;
        loop {
            let byte = *self.text.get(self.at).ok_or_else(|| self.wrong("unterminated string"))?;
            self.at += 1;
            match byte {
                b'"' => break,
                b'\\' => {
                    let letter = self.escape()?;
                    bytes.extend_from_slice(letter.encode_utf8(&mut [0; 4]).as_bytes());
                }
                _ => bytes.push(byte),
            }
        }
        String::from_utf8(bytes).map_err(|_| self.wrong("string is not UTF-8"))
    }

    fn escape(&mut self) -> Result<char, Error> {
        let byte = *self.text.get(self.at).ok_or_else(|| self.wrong("unterminated string"))?;
        self.at += 1;
        Ok(match byte {
            b'n' => '\n',
            b't' => '\t',
            b'r' => '\r',
            b'b' => '\u{8}',
            b'f' => '\u{c}',
            b'u' => {
                let first = self.hex()?;
                let mut units = vec![first];
                if (0xd800..0xdc00).contains(&first) && self.text[self.at..].starts_with(b"\\u") {
                    self.at += 2;
                    units.push(self.hex()?);
                }
                char::decode_utf16(units).next().and_then(Result::ok).unwrap_or(char::REPLACEMENT_CHARACTER)
            }
            b'"' | b'\\' | b'/' => byte as char,
            _ => return Err(self.wrong("unknown escape")),
        })
    }

    fn hex(&mut self) -> Result<u16, Error> {
        let digits = self.text.get(self.at..self.at + 4).ok_or_else(|| self.wrong("expected four hex digits"))?;
        let text = std::str::from_utf8(digits).unwrap_or("");
        let unit = u16::from_str_radix(text, 16).map_err(|_| self.wrong("invalid hex digits"))?;
        self.at += 4;
        Ok(unit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts() {
        let value = Value::parse(r#"{"a":"x\n\"\\\u00e9\ud83d\ude00","b":[ ],"c":{ }, "d":-1.5e3 }"#).unwrap();
        assert_eq!(value["a"].as_str(), Some("x\n\"\\é😀"));
        assert_eq!(value["d"].as_f64(), Some(-1500.0));
        assert_eq!(value["b"].items().len(), 0);
        assert_eq!(value.members().len(), 4);
    }

    #[test]
    fn what_is_wrong_is_said() {
        let deep = "[".repeat(1000);
        for text in [
            "",
            "{",
            "[1,",
            "{\"a\"}",
            "\"x",
            "\"\\u12",
            "\"\\q\"",
            "tru",
            "1 2",
            "-",
            "[1 2]",
            "\"\\ud800\\u\"",
            &deep,
        ] {
            assert!(Value::parse(text).is_err(), "{text}");
        }
        assert_eq!(Value::parse("\"\\ud800x\"").unwrap().as_str(), Some("\u{fffd}x"));
    }
}
