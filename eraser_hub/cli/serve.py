"""``eraser-hub serve``."""

from __future__ import annotations

import signal
import socket
import threading

import typer

from eraser_hub.publishing.options import ServeArguments

from .usage import call_with_options, with_options


@with_options(ServeArguments)
def serve(options: ServeArguments) -> None:
    """Serve the built datasets and metrics, read-only, to machines without internet.

        eraser-hub serve --dir hub

        eraser-hub serve --dir hub --host 0.0.0.0 --port 8080 --namespace org

    On the other machines, with HF_ENDPOINT=http://THIS-MACHINE:8080 in the environment:

        load_dataset("eraser", "movies")

        evaluate.load("eraser_faithfulness")

    huggingface_hub from 1.16 on wants a namespace before the name of a dataset; any will do: "org/eraser".
    """
    from eraser_hub import api

    server = call_with_options(api.serve, options)
    typer.echo(f"serving {options.folder} at {server.url} (read-only; Ctrl-C ends)")
    # bound to all addresses, of which readers need one: this machine's name
    everywhere = options.host in ("0.0.0.0", "::")
    address = f"http://{socket.gethostname()}:{server.server_address[1]}" if everywhere else server.url
    typer.echo(f"on the readers: export HF_ENDPOINT={address}")
    # a supervisor's SIGTERM ends it as Ctrl-C does; shutdown() must come from another thread than serve_forever()
    signal.signal(signal.SIGTERM, lambda *_: threading.Thread(target=server.shutdown).start())
    try:
        server.serve_forever(poll_interval=0.2)
    except KeyboardInterrupt:
        typer.echo("stopped")
    finally:
        server.server_close()
