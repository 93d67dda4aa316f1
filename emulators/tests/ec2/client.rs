//! Sends EC2's requests and parses its responses.

use std::{io, net::SocketAddr};

use crate::shared::http::exchange;
pub(crate) use crate::shared::http::{Response, open};
use fleetwright_emulators::ec2::Ec2Emulator;

pub(crate) const LAUNCH: &str =
    "Action=RunInstances&ImageId=ami-00000000000000001&InstanceType=m5.large&MinCount=1&MaxCount=1";

pub(crate) const AUTHORIZATION: &str = "AWS4-HMAC-SHA256 Credential=test/20260101/us-east-1/ec2/aws4_request, \
    SignedHeaders=host;x-amz-date, Signature=0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

impl Response {
    /// Returns the texts of all elements with this name.
    pub(crate) fn all(&self, name: &str) -> Vec<String> {
        let (open, close) = (format!("<{name}>"), format!("</{name}>"));
        let texts = self.body.split(open.as_str()).skip(1);
        let texts = texts.filter_map(|rest| rest.split(close.as_str()).next());
        texts.map(str::to_owned).collect()
    }

    /// Returns the code of an error; empty if there is none.
    pub(crate) fn code(&self) -> String {
        self.all("Code").first().cloned().unwrap_or_default()
    }
}

/// Posts a form with the version, signed.
pub(crate) fn post(emulator: &Ec2Emulator, form: &str) -> io::Result<Response> {
    let form = format!("Version=2016-11-15&{form}");
    request(emulator, "POST", "/", AUTHORIZATION, form.as_bytes())
}

pub(crate) fn request(
    emulator: &Ec2Emulator,
    method: &str,
    path: &str,
    authorization: &str,
    body: &[u8],
) -> io::Result<Response> {
    send(emulator.address(), method, path, authorization, body)
}

pub(crate) fn send(
    address: SocketAddr,
    method: &str,
    path: &str,
    authorization: &str,
    body: &[u8],
) -> io::Result<Response> {
    let signed = if authorization.is_empty() {
        String::new()
    } else {
        format!("Authorization: {authorization}\r\nX-Amz-Date: 20260101T000000Z\r\n")
    };
    exchange(address, method, path, &signed, body)
}
