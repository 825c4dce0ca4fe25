#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tells somebody of a decision of Seawall's guard: a webhook, Slack, PagerDuty, a Kubernetes Event.

guard.toml runs it, with the decision as JSON on standard input (docs/guard.md, "Hooks"):

    run_on_decision = "/usr/bin/python3 /usr/lib/seawall/hooks/notify.py slack --url-file /etc/seawall/slack.url"

An address that is a secret stands in a file of root's, not in guard.toml, which all may read.  The
guard never waits for it; after 30 s it ends whatever still runs.  Python 3.6, nothing else.
"""

import argparse
import json
import os
import socket
import ssl
import sys
import urllib.request

PAGERDUTY = "https://events.pagerduty.com/v2/enqueue"
ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount"
HOWS = ("acted", "observed", "refused", "reported", "ended")
SEVERITY = {"acted": "critical", "refused": "critical", "ended": "critical", "observed": "warning"}
WORDS = {
    "acted": "acts",
    "observed": "would have acted",
    "refused": "does nothing",
    "reported": "reports",
    "ended": "has ended a workload",
}
TEXT_MOST = 1000


def main():
    arguments = options()
    decision = json.loads(sys.stdin.read())
    # Of run_after_kill, which tells what became of an order, there is no such variable.
    how = os.environ.get("SEAWALL_HOW") or "ended"
    if how not in arguments.only.split(","):
        return 0
    node = arguments.node or socket.gethostname()
    url, body, headers = REQUESTS[arguments.to](arguments, decision, how, node)
    return send(url, body, headers, arguments)


def options():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("to", choices=sorted(REQUESTS))
    parser.add_argument("--url", default="", help="where to; of PagerDuty and of the API server known")
    parser.add_argument("--url-file", help="a file that holds it")
    parser.add_argument("--key-file", help="PagerDuty: a file that holds the routing key")
    parser.add_argument("--token-file", default=ACCOUNT + "/token", help="event: of the account")
    parser.add_argument("--ca-file", help="whom to believe, beside the host's authorities")
    parser.add_argument("--node", default=os.environ.get("NODE_NAME", ""), help="its name")
    parser.add_argument("--only", default=",".join(HOWS), help="outcomes to tell of: a,b,...")
    parser.add_argument("--timeout", type=float, default=10.0, metavar="SECONDS")
    return parser.parse_args()


def sentence(decision, how, node):
    text = "%s: seawall guard %s: %s" % (node, WORDS[how], decision.get("sentence", ""))
    return text if len(text) <= TEXT_MOST else text[: TEXT_MOST - 3] + "..."


def address(arguments, known=""):
    url = content(arguments.url_file) if arguments.url_file else arguments.url or known
    if not url.startswith(("http://", "https://")):
        sys.exit("notify: --url or --url-file: expected http://... or https://...")
    return url


def content(path):
    with open(path) as file:
        return file.read().strip()


def webhook(arguments, decision, how, node):
    return address(arguments), dict(decision, how=how, node=node), {}


def slack(arguments, decision, how, node):
    # Names come from containers: without its brackets <!channel> calls nobody.
    text = sentence(decision, how, node)
    for letter, instead in (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;")):
        text = text.replace(letter, instead)
    return address(arguments), {"text": "%s (%s)" % (text, decision.get("decision"))}, {}


def pagerduty(arguments, decision, how, node):
    if not arguments.key_file:
        sys.exit("notify: pagerduty wants --key-file")
    payload = {
        "summary": sentence(decision, how, node),
        "source": node,
        "severity": SEVERITY.get(how, "info"),
        "component": "seawall-guard",
        "class": decision.get("trigger") or "kill",
        "custom_details": {k: decision.get(k) for k in ("decision", "mode", "need_bytes", "refused")},
    }
    body = {
        "routing_key": content(arguments.key_file),
        "event_action": "trigger",
        # All steps of one decision are one alert.
        "dedup_key": "seawall-%s" % decision.get("decision"),
        "payload": payload,
    }
    return address(arguments, PAGERDUTY), body, {}


def event(arguments, decision, how, node):
    """Of the node: kubectl describe node, kubectl get events -A."""
    host = os.environ.get("KUBERNETES_SERVICE_HOST", "kubernetes.default.svc")
    port = os.environ.get("KUBERNETES_SERVICE_PORT", "443")
    known = "https://%s:%s" % ("[%s]" % host if ":" in host else host, port)
    at = decision.get("at")
    body = {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"generateName": "seawall-guard-", "namespace": "default"},
        "involvedObject": {"kind": "Node", "name": node, "uid": node},
        "reason": "Seawall" + how.capitalize(),
        "message": sentence(decision, how, node),
        "type": "Normal" if how == "reported" else "Warning",
        "source": {"component": "seawall-guard", "host": node},
        "reportingComponent": "seawall-guard",
        "reportingInstance": node,
        "firstTimestamp": at,
        "lastTimestamp": at,
        "count": 1,
    }
    if not arguments.ca_file and os.path.exists(ACCOUNT + "/ca.crt"):
        arguments.ca_file = ACCOUNT + "/ca.crt"
    url = address(arguments, known).rstrip("/") + "/api/v1/namespaces/default/events"
    return url, body, {"Authorization": "Bearer " + content(arguments.token_file)}


REQUESTS = {"webhook": webhook, "slack": slack, "pagerduty": pagerduty, "event": event}


class NoRedirect(urllib.request.HTTPRedirectHandler):
    """What leads elsewhere gets no token."""

    def redirect_request(self, *_):
        return None


def send(url, body, headers, arguments):
    data = json.dumps(body).encode()
    headers = dict(headers, **{"Content-Type": "application/json", "User-Agent": "seawall"})
    handlers = [NoRedirect(), urllib.request.ProxyHandler({})]
    if url.startswith("https:"):
        context = ssl.create_default_context(cafile=arguments.ca_file)
        handlers.append(urllib.request.HTTPSHandler(context=context))
    opener = urllib.request.build_opener(*handlers)
    try:
        request = urllib.request.Request(url, data, headers)
        with opener.open(request, timeout=arguments.timeout) as answer:
            answer.read(4096)
    except (OSError, ValueError) as error:  # urllib's own are OSErrors
        print("notify: %s" % error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
