//! The wire form of protocol buffers: as much of it as is needed to write messages.

/// A message under construction.
#[derive(Clone, Debug, Default)]
pub struct Message {
    bytes: Vec<u8>,
}

impl Message {
    fn raw(&mut self, mut n: u64) {
        while n >= 0x80 {
            self.bytes.push(n as u8 | 0x80);
            n >>= 7;
        }
        self.bytes.push(n as u8);
    }

    fn key(&mut self, field: u32, kind: u32) {
        self.raw(u64::from(field << 3 | kind));
    }

    /// A number; zero is what readers take for a field that is left out.
    pub fn number(mut self, field: u32, n: u64) -> Message {
        self.key(field, 0);
        self.raw(n);
        self
    }

    pub fn double(mut self, field: u32, v: f64) -> Message {
        self.key(field, 1);
        self.bytes.extend(v.to_le_bytes());
        self
    }

    pub fn bytes(mut self, field: u32, bytes: &[u8]) -> Message {
        self.key(field, 2);
        self.raw(bytes.len() as u64);
        self.bytes.extend_from_slice(bytes);
        self
    }

    pub fn text(self, field: u32, text: &str) -> Message {
        self.bytes(field, text.as_bytes())
    }

    pub fn message(self, field: u32, inner: Message) -> Message {
        self.bytes(field, &inner.bytes)
    }

    /// Numbers of a repeated field in one piece.
    pub fn packed(self, field: u32, list: &[u64]) -> Message {
        let mut inner = Message::default();
        list.iter().for_each(|&n| inner.raw(n));
        self.message(field, inner)
    }

    pub fn finish(self) -> Vec<u8> {
        self.bytes
    }
}
