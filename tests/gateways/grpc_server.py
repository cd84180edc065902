# A gRPC server on the unix socket that is its argument, with a method of each kind. Messages are bytes.

import sys
from concurrent import futures

import grpc


def unary(message, context):
    context.set_trailing_metadata([("x-end", "there")])
    return b"unary " + message


def client_streaming(messages, context):
    return b"client " + b",".join(messages)


def server_streaming(message, context):
    for number in range(100):
        yield b"server %d " % number + message


def both(messages, context):
    for message in messages:
        yield b"both " + message


def failing(message, context):
    context.abort(grpc.StatusCode.NOT_FOUND, "no such thing")


handlers = {
    "Unary": grpc.unary_unary_rpc_method_handler(unary),
    "ClientStreaming": grpc.stream_unary_rpc_method_handler(client_streaming),
    "ServerStreaming": grpc.unary_stream_rpc_method_handler(server_streaming),
    "Both": grpc.stream_stream_rpc_method_handler(both),
    "Failing": grpc.unary_unary_rpc_method_handler(failing),
}

server = grpc.server(futures.ThreadPoolExecutor(max_workers=8))
server.add_generic_rpc_handlers([grpc.method_handlers_generic_handler("test.Service", handlers)])
server.add_insecure_port("unix:" + sys.argv[1])
server.start()
server.wait_for_termination()
