# Calls each method of grpc_server.py at the address that is its argument, and prints what comes.

import sys
from concurrent.futures import Future

import grpc

channel = grpc.insecure_channel(sys.argv[1], options=[("grpc.enable_http_proxy", 0)])
service = "/test.Service/"
timeout = 20


def messages():
    # The second message waits for the answer to the first.
    yield b"1"
    answered.result()
    yield b"2"


reply, call = channel.unary_unary(service + "Unary").with_call(b"hi", timeout=timeout)
print(reply.decode(), dict(call.trailing_metadata())["x-end"])

reply = channel.unary_unary(service + "Unary")(b"x" * 300_000, timeout=timeout)
print(len(reply))

reply = channel.stream_unary(service + "ClientStreaming")(iter([b"1", b"2", b"3"]), timeout=timeout)
print(reply.decode())

replies = list(channel.unary_stream(service + "ServerStreaming")(b"hi", timeout=timeout))
print(len(replies), replies[-1].decode())

answered = Future()
for reply in channel.stream_stream(service + "Both")(messages(), timeout=timeout):
    if not answered.done():
        answered.set_result(None)
    print(reply.decode())

try:
    channel.unary_unary(service + "Failing")(b"", timeout=timeout)
except grpc.RpcError as error:
    print(error.code().name, error.details())
