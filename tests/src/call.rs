//! A request that a client is going to send.

/// A request, for HTTP/1 and HTTP/2 alike.
#[derive(Clone, Debug)]
pub struct Call {
    pub(crate) method: String,
    pub(crate) target: String,
    pub(crate) host: String,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
    chunked: bool,
    version: u8,
}

impl Call {
    pub fn new(method: &str, target: &str) -> Self {
        Self {
            method: method.to_owned(),
            target: target.to_owned(),
            host: "localhost".to_owned(),
            headers: Vec::new(),
            body: Vec::new(),
            chunked: false,
            version: 1,
        }
    }

    pub fn get(target: &str) -> Self {
        Self::new("GET", target)
    }

    pub fn head(target: &str) -> Self {
        Self::new("HEAD", target)
    }

    pub fn post(target: &str, body: impl Into<Vec<u8>>) -> Self {
        Self::new("POST", target).body(body)
    }

    /// Replaces the target.
    pub fn with_target(mut self, target: &str) -> Self {
        target.clone_into(&mut self.target);
        self
    }

    /// Names another host than `localhost`.
    pub fn host(mut self, host: &str) -> Self {
        host.clone_into(&mut self.host);
        self
    }

    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    pub fn body(mut self, body: impl Into<Vec<u8>>) -> Self {
        self.body = body.into();
        self
    }

    /// Tells an HTTP/2 server how long the body is; it needs not know.
    pub fn with_length(self) -> Self {
        let length = self.body.len().to_string();
        self.header("content-length", &length)
    }

    /// Sends the body in chunks, without a length.
    pub fn chunked(mut self) -> Self {
        self.chunked = true;
        self
    }

    /// Speaks HTTP/1.0.
    pub fn http10(mut self) -> Self {
        self.version = 0;
        self
    }

    /// Tells an HTTP/1 server to close after the response.
    pub fn closing(self) -> Self {
        self.header("Connection", "close")
    }

    pub fn method(&self) -> &str {
        &self.method
    }

    pub fn target(&self) -> &str {
        &self.target
    }

    /// The body.
    pub fn sends(&self) -> &[u8] {
        &self.body
    }

    /// The head as HTTP/2 and HTTP/3 have it.
    pub(crate) fn request(&self, scheme: &str) -> Result<http::Request<()>, http::Error> {
        let mut request = http::Request::builder()
            .method(self.method.as_str())
            .uri(format!("{scheme}://{}{}", self.host, self.target));
        for (name, value) in &self.headers {
            request = request.header(name, value);
        }
        request.body(())
    }

    /// Puts this before the target.
    pub(crate) fn below(mut self, path: &str) -> Self {
        self.target.insert_str(0, path);
        self
    }

    /// Whether an HTTP/1 server closes after the response.
    pub(crate) fn closes(&self) -> bool {
        let connection = self
            .headers
            .iter()
            .find(|(name, _)| name.eq_ignore_ascii_case("connection"));
        match connection {
            Some((_, value)) => value == "close",
            None => self.version == 0,
        }
    }

    /// The bytes under HTTP/1.
    pub fn bytes(&self) -> Vec<u8> {
        let (head, body) = self.parts();
        [head, body].concat()
    }

    /// The head and the body under HTTP/1, to be sent apart.
    pub fn parts(&self) -> (Vec<u8>, Vec<u8>) {
        let Self {
            method,
            target,
            host,
            version,
            ..
        } = self;
        let mut head = format!("{method} {target} HTTP/1.{version}\r\nHost: {host}\r\n");
        for (name, value) in &self.headers {
            head += &format!("{name}: {value}\r\n");
        }

        let mut body = self.body.clone();
        if self.chunked {
            head += "Transfer-Encoding: chunked\r\n";
            body = chunks(&self.body);
            body.extend(b"0\r\n\r\n");
        } else if !body.is_empty() {
            head += &format!("Content-Length: {}\r\n", body.len());
        }

        (format!("{head}\r\n").into_bytes(), body)
    }
}

/// The bytes in chunks of at most 4,000, the last one of no bytes not included.
pub(crate) fn chunks(bytes: &[u8]) -> Vec<u8> {
    let chunk = |part: &[u8]| [format!("{:x}\r\n", part.len()).as_bytes(), part, b"\r\n"].concat();
    bytes.chunks(4_000).flat_map(chunk).collect()
}
