#!/bin/bash
# One flow of iperf3 for 2 s through two bridges, with netem and a rate between them, as public labs
# have it. Prints Mbit/s at the receiver in the first second and in the last, what was sent again,
# and how busy the processor was in the busiest 0.2 s of the flow, in percent. A large bucket is
# full as the first second begins; in the last it is empty, unless the flow stays below its rate.
#
# held_back.sh QDISC PLACE RATE BUCKET RMEM
#
# QDISC: htb, tbf, cake, fq or none. PLACE: "under" is netem's child, "over" has netem below it.
# CAKE and fq take no child; there netem is on the next device. RATE: Mbit/s. BUCKET: bytes.
# RMEM: the middle value of tcp_rmem.
set -e
qdisc=$1 place=$2 rate=$3 bucket=$4 rmem=$5
limit_bytes=$(( rate * 1500 > 500000 ? rate * 1500 : 500000 ))
netem() {       # HOST DEVICE WORDS...
    tc -n "$1" qdisc add dev "$2" "${@:3}" netem delay 20ms limit 10000
}
limit() {       # HOST DEVICE WORDS...: the rate; handle 2:, whose child netem may be
    case $qdisc in
    htb) tc -n "$1" qdisc add dev "$2" "${@:3}" handle 2: htb default 1
        tc -n "$1" class add dev "$2" parent 2: classid 2:1 htb rate "${rate}mbit" burst "$bucket" \
            cburst "$bucket" ;;
    tbf) tc -n "$1" qdisc add dev "$2" "${@:3}" handle 2: tbf rate "${rate}mbit" burst "$bucket" \
            limit "$limit_bytes" ;;
    cake) tc -n "$1" qdisc add dev "$2" "${@:3}" handle 2: cake bandwidth "${rate}mbit" ;;
    fq) tc -n "$1" qdisc add dev "$2" "${@:3}" handle 2: fq maxrate "${rate}mbit" ;;
    esac
}
for each in a b s1 s2; do
    ip netns add $each
    ip -n $each link set dev lo up
done
ip link add name s netns a type veth peer name p netns s1
ip link add name s netns b type veth peer name p netns s2
ip link add name m netns s1 type veth peer name m netns s2
for each in s1 s2; do
    ip -n $each link add name bridge0 type bridge
    for device in p m; do
        ip -n $each link set dev $device master bridge0
        ip -n $each link set dev $device up
    done
    ip -n $each link set dev bridge0 up
done
ip -n a addr add 10.7.0.1/24 dev s
ip -n b addr add 10.7.0.2/24 dev s
for each in a b; do
    ip -n $each link set dev s up
    ip netns exec $each sysctl -qw net.ipv4.tcp_rmem="10240 $rmem 16777216" \
        net.ipv4.tcp_wmem="10240 87380 16777216"
done
case $qdisc-$place in
none-*) netem s1 m root handle 1: ;;
*-under) netem s1 m root handle 1:; limit s1 m parent 1: ;;
htb-over) limit s1 m root; netem s1 m parent 2:1 handle 1: ;;
tbf-over) limit s1 m root; netem s1 m parent 2: handle 1: ;;
*-over) limit s1 m root; netem s2 p root handle 1: ;;
esac
ip netns exec b iperf3 -s -1 -i 0.5 -J >server.json &
server=$!
until ip netns exec b ss -Hltn | grep -q :5201; do sleep 0.1; done
ip netns exec a ping -q -c 2 -i 0.2 10.7.0.2 >/dev/null
rm -f never
mkfifo never            # read waits for what nobody writes
# shellcheck disable=SC2016 # the inner bash expands it
ip netns exec b bash -c '
    exec 9<>never
    while read -r seconds idle </proc/uptime; do
        echo "$seconds $idle $(</sys/class/net/s/statistics/rx_bytes)"
        read -rt 0.1 -u 9
    done' >watched.txt &
watch=$!
ip netns exec a iperf3 -c 10.7.0.2 -t 2 -i 0.5 -J >flow.json
wait $server
kill $watch
python3 - <<'PYTHON'
import json
flow, server = [json.load(open(name)) for name in ("flow.json", "server.json")]
halves = [each["sum"]["bits_per_second"] / 1e6 for each in server["intervals"]
          if each["sum"]["seconds"] > 0.4]
watched = [[float(word) for word in line.split()] for line in open("watched.txt")]
busy = [1 - (late[1] - early[1]) / (late[0] - early[0]) for early, late in zip(watched, watched[2:])
        if early[2] > 100_000 and late[2] - early[2] > 100_000]
print("=", round(sum(halves[:2]) / 2, 1), round(sum(halves[2:4]) / 2, 1),
      flow["end"]["sum_sent"]["retransmits"], max(0, round(100 * max(busy))))
PYTHON
