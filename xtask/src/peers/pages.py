"""A small site in Flask, which foreign servers run: uWSGI, and flup by SCGI."""

import hashlib
import sys

from flask import Flask, Response, redirect, request, session

app = application = Flask(__name__)
app.secret_key = "the tests' own"


@app.get("/")
def front():
    return f"{request.scheme} {request.host} {request.remote_addr} {request.args.get('q', '')}"


@app.post("/form")
def form():
    session["name"] = request.form["name"]
    return redirect("/welcome")


@app.get("/welcome")
def welcome():
    return f"Welcome, {session.get('name', 'stranger')}"


@app.post("/upload")
def upload():
    data = request.files["file"].read()
    return {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}


@app.get("/stream")
def stream():
    return Response((f"line {number}\n" * 100 for number in range(500)), mimetype="text/plain")


@app.get("/cached")
def cached():
    return Response("kept", headers={"Cache-Control": "max-age=60", "ETag": '"one"'})


@app.get("/broken")
def broken():
    raise RuntimeError("on purpose")


if __name__ == "__main__":
    from flup.server.scgi import WSGIServer

    WSGIServer(app, scriptName="", bindAddress=sys.argv[1], umask=0).run()
