"""The script whose capture is small.pcapng.gz: HTTP with loss, a ping, and a delay never used."""
import time

from mininet.link import TCLink
from mininet.net import Mininet
from mininet.nodelib import LinuxBridge
from mininet.topo import Topo


class Three(Topo):
    def build(self):
        switch = self.addSwitch("s1")
        self.addLink(self.addHost("h1"), switch, bw=5, delay="20ms", max_queue_size=20)
        self.addLink(self.addHost("h2"), switch, bw=50, delay="5ms", loss=10)
        self.addLink(self.addHost("h3"), switch)


net = Mininet(Three(), link=TCLink, switch=LinuxBridge, controller=None)
net.start()
h1, h2, h3 = net.get("h1", "h2", "h3")
h3.cmd("tc qdisc add dev h3-eth0 root handle 1: htb default 30")
h3.cmd("tc class add dev h3-eth0 parent 1: classid 1:10 htb rate 1mbit")
h3.cmd("tc qdisc add dev h3-eth0 parent 1:10 netem delay 50ms")
h1.cmd("mkdir -p www; head -c 60000 /dev/zero > www/big; cd www;"
       " python3 -m http.server 80 >/dev/null 2>&1 &")
time.sleep(1)
for host in (h2, h3):
    print(host.cmd("curl -s -o /dev/null -w '%{time_total}' http://10.0.0.1/big"))
print(h3.cmd("ping -c 2 10.0.0.1"))
print(h2.cmd("curl -s -m 5 http://10.0.0.3:81/"))
net.stop()
