# A WSGI application that tells what it was asked. It fails as a member of the name "u1": nginx
# says in the parameter HOP through which one it asks.


def application(environ, start_response):
    body = environ["wsgi.input"].read()
    hop = environ.get("HOP", "")
    if hop == "u1":
        start_response("503 Service Unavailable", [("Content-Type", "text/plain"), ("X-Failed", "yes")])
        return [b"failed"]

    start_response("200 OK", [("Content-Type", "text/plain"), ("X-Hop", hop)])
    head = "{REQUEST_METHOD} {REQUEST_URI} ".format(**environ)
    return [head.encode(), body]
