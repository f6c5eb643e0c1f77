"""Routes: what ip is told, and that another metric than was asked is noticed."""

from __future__ import annotations

from engines.routes import Route, RouteOptions, dumbbell_routes, star_routes


def test_the_windows_stand_on_either_hosts_route() -> None:
    server, client = star_routes(10, 27, "cubic")
    assert server.command == "route replace 10.0.0.1 dev server-eth0 initcwnd 10 congctl cubic"
    assert client.command == "route replace 10.0.0.2 dev client-eth0 initrwnd 27"


def test_options_become_metrics() -> None:
    server, client = star_routes(1, 80, "reno", RouteOptions(200, True, 536))
    assert server.command.endswith("rto_min 200ms")
    assert client.command.endswith("quickack 1 advmss 536")


def test_every_client_of_the_dumbbell_has_its_window() -> None:
    assert [route.command for route in dumbbell_routes("server2", [3, 10], "cubic")] == [
        f"route replace 10.0.1.{number} via 10.0.2.254 dev server2-eth0"
        f" initcwnd {window} congctl cubic" for number, window in ((1, 3), (2, 10))]


def test_another_metric_than_was_asked_is_noticed() -> None:
    route = Route("10.0.0.1", "server-eth0", {"initcwnd": 10, "congestion": "cubic"})
    rows = [{"dst": "10.0.0.1", "metrics": [{"initcwnd": 10, "congestion": "cubic"}]}]
    assert route.differences(rows) == []
    rows[0]["metrics"] = [{"initcwnd": 4, "congestion": "cubic"}]
    (difference,) = route.differences(rows)
    assert "'initcwnd': 4" in difference
    assert route.differences([])
