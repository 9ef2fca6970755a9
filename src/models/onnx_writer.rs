//! Writes ONNX graphs: the few protobuf fields of `onnx.proto` that a small model needs.
//!
//! Field numbers are those of the [ONNX format](https://github.com/onnx/onnx/blob/main/onnx/onnx.proto).
//! The bytes depend on nothing but the calls, so a SHA-256 of the result can be pinned.

/// Element types of a tensor (`TensorProto.DataType`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ElementType {
    /// 32-bit floating point.
    Float = 1,
    /// Unsigned bytes.
    Uint8 = 2,
    /// 32-bit integers.
    Int32 = 6,
    /// 64-bit integers: token ids.
    Int64 = 7,
    /// Signed 4-bit integers, two a byte, the low half first.
    Int4 = 22,
}

/// An attribute of a node.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Attribute {
    /// An integer.
    Int(i64),
    /// A floating-point number.
    Float(f32),
}

/// One dimension of an input or output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dim {
    /// Always this long.
    Fixed(usize),
    /// As long as the caller makes it; equal names are equally long.
    Any(&'static str),
}

/// An operator set that a graph uses: its domain (empty for ONNX itself) and version.
pub type OperatorSet = (&'static str, i64);

/// A graph under construction. Nodes must be added in an order in which inputs precede their use.
///
/// ```
/// use rankgate::models::onnx_writer::{Dim, ElementType, Graph};
///
/// let mut graph = Graph::new("twice");
/// graph.input("x", ElementType::Float, &[Dim::Any("n")]);
/// graph.node("Add", "", &["x", "x"], "y", &[]);
/// graph.output("y", ElementType::Float, &[Dim::Any("n")]);
/// assert_eq!(graph.into_model(&[("", 21)])[..2], [0x08, 10]); // ir_version = 10
/// ```
#[derive(Debug)]
pub struct Graph {
    body: Message,
}

impl Graph {
    /// A graph without nodes.
    pub fn new(name: &str) -> Self {
        let mut body = Message::default();
        body.text(2, name);
        Self { body }
    }

    /// Adds the node `op` of `domain` with one output. An empty input name leaves that input out.
    pub fn node(
        &mut self,
        op: &str,
        domain: &str,
        inputs: &[&str],
        output: &str,
        attributes: &[(&str, Attribute)],
    ) {
        let mut node = Message::default();
        for input in inputs {
            node.text(1, input);
        }
        node.text(2, output);
        node.text(3, output);
        node.text(4, op);
        for (name, value) in attributes {
            let mut attribute = Message::default();
            attribute.text(1, name);
            match value {
                Attribute::Float(value) => {
                    attribute.float(2, *value);
                    attribute.int(20, 1);
                }
                Attribute::Int(value) => {
                    attribute.int(3, *value);
                    attribute.int(20, 2);
                }
            }
            node.bytes(5, &attribute.0);
        }
        node.text(7, domain);
        self.body.bytes(1, &node.0);
    }

    /// Adds constant data: `raw` holds the elements of shape `dims`, little-endian, row-major.
    pub fn constant(&mut self, name: &str, element: ElementType, dims: &[usize], raw: &[u8]) {
        let mut tensor = Message::default();
        for &dim in dims {
            tensor.int(1, dim as i64);
        }
        tensor.int(2, element as i64);
        tensor.text(8, name);
        tensor.bytes(9, raw);
        self.body.bytes(5, &tensor.0);
    }

    /// Declares what the caller gives.
    pub fn input(&mut self, name: &str, element: ElementType, dims: &[Dim]) {
        self.body.bytes(11, &value_info(name, element, dims).0);
    }

    /// Declares what the caller gets.
    pub fn output(&mut self, name: &str, element: ElementType, dims: &[Dim]) {
        self.body.bytes(12, &value_info(name, element, dims).0);
    }

    /// The finished model file, of IR version 10.
    pub fn into_model(self, operator_sets: &[OperatorSet]) -> Vec<u8> {
        let mut model = Message::default();
        model.int(1, 10);
        model.bytes(7, &self.body.0);
        for (domain, version) in operator_sets {
            let mut set = Message::default();
            set.text(1, domain);
            set.int(2, *version);
            model.bytes(8, &set.0);
        }
        model.0
    }
}

fn value_info(name: &str, element: ElementType, dims: &[Dim]) -> Message {
    let mut shape = Message::default();
    for dim in dims {
        let mut message = Message::default();
        match dim {
            Dim::Fixed(length) => message.int(1, *length as i64),
            Dim::Any(name) => message.text(2, name),
        }
        shape.bytes(1, &message.0);
    }
    let mut tensor = Message::default();
    tensor.int(1, element as i64);
    tensor.bytes(2, &shape.0);
    let mut of_type = Message::default();
    of_type.bytes(1, &tensor.0);
    let mut info = Message::default();
    info.text(1, name);
    info.bytes(2, &of_type.0);
    info
}

/// A protobuf message being written, field by field.
#[derive(Debug, Default)]
struct Message(Vec<u8>);

impl Message {
    fn varint(&mut self, mut value: u64) {
        while value > 0x7f {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }

    fn tag(&mut self, field: u64, wire_type: u64) {
        self.varint(field << 3 | wire_type);
    }

    fn int(&mut self, field: u64, value: i64) {
        self.tag(field, 0);
        self.varint(value as u64);
    }

    fn float(&mut self, field: u64, value: f32) {
        self.tag(field, 5);
        self.0.extend(value.to_le_bytes());
    }

    fn bytes(&mut self, field: u64, bytes: &[u8]) {
        self.tag(field, 2);
        self.varint(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
    }

    fn text(&mut self, field: u64, text: &str) {
        self.bytes(field, text.as_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_as_protobuf_wants_them() {
        let mut message = Message::default();
        message.int(1, 300);
        assert_eq!(message.0, [0x08, 0xac, 0x02]);
        let mut message = Message::default();
        message.int(20, -1);
        assert_eq!(message.0.len(), 2 + 10, "a negative number takes ten bytes");
        let mut message = Message::default();
        message.float(2, 1.0);
        assert_eq!(message.0, [0x15, 0, 0, 0x80, 0x3f]);
    }
}
