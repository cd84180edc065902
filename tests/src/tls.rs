//! TLS on either side of nginx, under one certificate that is made for the run.

use std::path::Path;
use std::sync::{Arc, OnceLock};

use tokio::net::TcpStream;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore, ServerConfig};
use tokio_rustls::{TlsAcceptor, TlsConnector, server};

/// The name that the certificate is for.
pub(crate) const NAME: &str = "localhost";

struct Identity {
    certificate: CertificateDer<'static>,
    key: PrivateKeyDer<'static>,
    certificate_pem: String,
    key_pem: String,
}

fn identity() -> &'static Identity {
    static IDENTITY: OnceLock<Identity> = OnceLock::new();

    IDENTITY.get_or_init(|| {
        let made = rcgen::generate_simple_self_signed([NAME.to_owned()]).expect("a certificate");
        Identity {
            certificate_pem: made.cert.pem(),
            key_pem: made.key_pair.serialize_pem(),
            key: PrivateKeyDer::try_from(made.key_pair.serialize_der()).expect("a key"),
            certificate: made.cert.der().clone(),
        }
    })
}

/// What nginx needs in `http {}`, the files included.
pub(crate) fn settings(folder: &Path) -> &'static str {
    let write = |name, text: &str| std::fs::write(folder.join(name), text).expect("a folder");
    write("certificate.pem", &identity().certificate_pem);
    write("key.pem", &identity().key_pem);

    "ssl_certificate certificate.pem; ssl_certificate_key key.pem;"
}

/// What a client trusts, that asks for this protocol of those that nginx offers.
pub(crate) fn client(alpn: &str) -> ClientConfig {
    let mut roots = RootCertStore::empty();
    roots.add(identity().certificate.clone()).expect("a root");
    let mut config = ClientConfig::builder()
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![alpn.into()];
    config
}

/// Shakes hands with nginx, asking for this protocol of those that it offers.
pub(crate) async fn connect(stream: TcpStream, alpn: &str) -> TlsStream<TcpStream> {
    let name = ServerName::try_from(NAME).expect("a name");
    let handshake = TlsConnector::from(Arc::new(client(alpn))).connect(name, stream);
    handshake.await.expect("a TLS handshake")
}

/// Shakes hands as a backend; None: the other side did not.
pub(crate) async fn accept(stream: TcpStream) -> Option<server::TlsStream<TcpStream>> {
    let Identity {
        certificate, key, ..
    } = identity();
    let config = ServerConfig::builder()
        .with_no_client_auth()
        .with_single_cert(vec![certificate.clone()], key.clone_key())
        .expect("a server's configuration");
    TlsAcceptor::from(Arc::new(config))
        .accept(stream)
        .await
        .ok()
}
