//! The writing of a request's head, whatever its format: whoever decides what is in it does not
//! know how it is sent.

use super::field::Field;
use super::value::Digits;

/// Writes the head of a request in the format of its protocol: the line first, then the host, then
/// field by field. The writers check and escape nothing: a target must hold no space, and a value
/// no line end.
pub trait RequestWriter {
    /// The method and the target.
    fn line(&mut self, method: &[u8], target: &[u8]);

    /// The host with its port; possibly empty.
    fn host(&mut self, host: &[u8]);

    /// A field, which is not the host.
    fn field(&mut self, name: &[u8], value: &[u8]);

    /// A field as spans of the bytes that it stands in.
    fn span(&mut self, bytes: &[u8], field: &Field);

    /// A field whose value is a decimal number.
    fn number(&mut self, name: &[u8], value: u64) {
        self.field(name, Digits::of(value).text());
    }
}
