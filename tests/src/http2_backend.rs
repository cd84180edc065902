//! The side of a backend that speaks HTTP/2.

use bytes::Bytes;
use h2::RecvStream;
use h2::server::{Connection, SendResponse};
use http::HeaderMap;
use tokio::net::TcpStream;
use tokio::task::JoinSet;

use crate::backend::{Record, Script};
use crate::message::Request;
use crate::reply::{Reply, Then};

/// Serves one connection. Whatever has no place in HTTP/2 ends it.
pub(crate) async fn serve(stream: TcpStream, connection: usize, script: &Script, record: &Record) {
    let Ok(mut server) = h2::server::handshake(stream).await else {
        return;
    };
    let mut exchanges = JoinSet::new();

    while let Some(Ok((request, sending))) = server.accept().await {
        let (head, incoming) = request.into_parts();
        let Some((body, trailers)) = read(&mut server, incoming).await else {
            return;
        };
        let request = message(&head, body, &trailers, connection);
        record.add(&request);

        let reply = script(&request);
        if reply.is_raw() && reply.then != Then::Stall {
            return;
        }
        exchanges.spawn(answer(reply, sending, request.method == "HEAD"));
    }
}

/// Reads a body while the connection is driven on.
async fn read(
    server: &mut Connection<TcpStream, Bytes>,
    mut incoming: RecvStream,
) -> Option<(Vec<u8>, HeaderMap)> {
    let reading = async move {
        let mut body = Vec::new();
        while let Some(data) = incoming.data().await {
            let data = data.ok()?;
            incoming.flow_control().release_capacity(data.len()).ok()?;
            body.extend(data);
        }
        let trailers = incoming.trailers().await.ok()?.unwrap_or_default();
        Some((body, trailers))
    };

    tokio::pin!(reading);
    std::future::poll_fn(|context| {
        if let std::task::Poll::Ready(read) = reading.as_mut().poll(context) {
            return std::task::Poll::Ready(read);
        }
        // Frames arrive only while somebody drives the connection; nginx sends one request at a
        // time on each.
        match server.poll_closed(context) {
            std::task::Poll::Ready(_) => std::task::Poll::Ready(None),
            std::task::Poll::Pending => std::task::Poll::Pending,
        }
    })
    .await
}

fn message(
    head: &http::request::Parts,
    body: Vec<u8>,
    trailers: &HeaderMap,
    connection: usize,
) -> Request {
    let target = head.uri.path_and_query().map(ToString::to_string);
    let target = target.unwrap_or_default();

    let mut raw = format!("{} {}\r\n", head.method, head.uri);
    for (name, value) in &head.headers {
        raw += &format!("{name}: {value:?}\r\n");
    }
    for (name, value) in trailers {
        raw += &format!("trailer {name}: {value:?}\r\n");
    }
    Request {
        method: head.method.to_string(),
        target,
        version: 2,
        headers: head.headers.clone(),
        body,
        raw: (raw + "\r\n").into_bytes(),
        whole: true,
        connection,
    }
}

/// Sends a reply. A client that goes away meanwhile is no failure of the backend.
async fn answer(reply: Reply, mut sending: SendResponse<Bytes>, to_head: bool) {
    let Some((head, body, trailers)) = reply.http2() else {
        return std::future::pending().await;
    };
    let bodiless = to_head || body.is_empty() && trailers.is_empty() && reply.then == Then::Next;
    let Ok(mut stream) = sending.send_response(head, bodiless) else {
        return;
    };
    if bodiless {
        return;
    }

    let ends = matches!(reply.then, Then::Next | Then::Close) && trailers.is_empty();
    let _ = stream.send_data(body.into(), ends);
    if !trailers.is_empty() {
        let _ = stream.send_trailers(trailers);
    }

    match reply.then {
        Then::Endless => {
            while stream
                .send_data(Bytes::from_static(&[b'~'; 1024]), false)
                .is_ok()
            {
                stream.reserve_capacity(1024);
                let capacity = std::future::poll_fn(|context| stream.poll_capacity(context));
                if !matches!(capacity.await, Some(Ok(_))) {
                    return;
                }
            }
        }
        Then::Stall => {
            let _ = std::future::poll_fn(|context| stream.poll_reset(context)).await;
        }
        Then::Next | Then::Close | Then::Echo => {}
    }
}
