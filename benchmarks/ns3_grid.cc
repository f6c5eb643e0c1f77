/*
 * The fetches of a grid in ns-3, one after another: client and server on one point-to-point link,
 * a request, a response, the client closes. ns-3's own model of TCP; nothing is captured.
 *
 *   ns3_grid TcpCubic|TcpNewReno REQUEST_BYTES RESPONSE_BYTES QUEUE_PACKETS <cells
 *
 * A cell is a line "RTT_MS KBPS INITCWND". For each: the same line and the milliseconds from the
 * client's SYN to the last byte of the response, -1 where it did not come.
 */
#include <ns3/core-module.h>
#include <ns3/internet-module.h>
#include <ns3/network-module.h>
#include <ns3/point-to-point-module.h>

#include <iostream>

using namespace ns3;

namespace
{
const uint16_t PORT = 80;
const uint32_t MSS = 1448; // as Linux with time stamps, which ns-3 sends as well
uint32_t requestBytes, responseBytes;

struct Fetch
{
    uint32_t asked = 0, sent = 0, received = 0;
    Time end = Seconds(-0.001);
};

void
SendMore(Fetch* fetch, Ptr<Socket> socket, uint32_t)
{
    while (fetch->asked >= requestBytes && fetch->sent < responseBytes)
    {
        const uint32_t size =
            std::min(responseBytes - fetch->sent, std::min(socket->GetTxAvailable(), MSS));
        if (size == 0 || socket->Send(Create<Packet>(size)) <= 0)
        {
            return;
        }
        fetch->sent += size;
    }
}

void
Asked(Fetch* fetch, Ptr<Socket> socket)
{
    while (Ptr<Packet> packet = socket->Recv())
    {
        fetch->asked += packet->GetSize();
        if (packet->GetSize() == 0)
        {
            return;
        }
    }
    SendMore(fetch, socket, 0);
}

void
Accepted(Fetch* fetch, Ptr<Socket> socket, const Address&)
{
    socket->SetRecvCallback(MakeBoundCallback(&Asked, fetch));
    socket->SetSendCallback(MakeBoundCallback(&SendMore, fetch));
}

void
Connected(Ptr<Socket> socket)
{
    socket->Send(Create<Packet>(requestBytes));
}

void
Received(Fetch* fetch, Ptr<Socket> socket)
{
    while (Ptr<Packet> packet = socket->Recv())
    {
        fetch->received += packet->GetSize();
        if (packet->GetSize() == 0)
        {
            return;
        }
    }
    if (fetch->received == responseBytes)
    {
        fetch->end = Simulator::Now();
        socket->Close();
        Simulator::Stop();
    }
}

/* Milliseconds of one fetch over a network of its own. */
double
Measured(double rttMs, double kbps, uint32_t initcwnd, uint32_t queuePackets)
{
    Config::SetDefault("ns3::TcpSocket::InitialCwnd", UintegerValue(initcwnd));
    NodeContainer nodes(2);
    PointToPointHelper link;
    link.SetDeviceAttribute("DataRate", DataRateValue(DataRate(uint64_t(kbps * 1000))));
    link.SetChannelAttribute("Delay", TimeValue(MicroSeconds(uint64_t(rttMs * 500))));
    link.SetQueue("ns3::DropTailQueue",
                  "MaxSize",
                  QueueSizeValue(QueueSize(QueueSizeUnit::PACKETS, queuePackets)));
    const NetDeviceContainer devices = link.Install(nodes);
    InternetStackHelper().Install(nodes);
    const Ipv4InterfaceContainer addresses =
        Ipv4AddressHelper("10.0.0.0", "255.255.255.0").Assign(devices);

    Fetch fetch;
    Ptr<Socket> server = Socket::CreateSocket(nodes.Get(1), TcpSocketFactory::GetTypeId());
    server->Bind(InetSocketAddress(Ipv4Address::GetAny(), PORT));
    server->Listen();
    server->SetAcceptCallback(MakeNullCallback<bool, Ptr<Socket>, const Address&>(),
                              MakeBoundCallback(&Accepted, &fetch));
    Ptr<Socket> client = Socket::CreateSocket(nodes.Get(0), TcpSocketFactory::GetTypeId());
    client->SetConnectCallback(MakeCallback(&Connected), MakeNullCallback<void, Ptr<Socket>>());
    client->SetRecvCallback(MakeBoundCallback(&Received, &fetch));
    Simulator::Schedule(Seconds(0), [client, addresses]() {
        client->Connect(InetSocketAddress(addresses.GetAddress(1), PORT));
    });
    Simulator::Stop(Seconds(600));
    Simulator::Run();
    Simulator::Destroy();
    return fetch.end.GetSeconds() * 1000;
}
} // namespace

int
main(int argc, char* argv[])
{
    if (argc != 5)
    {
        std::cerr << "ns3_grid CONTROL REQUEST_BYTES RESPONSE_BYTES QUEUE_PACKETS <cells\n";
        return 2;
    }
    requestBytes = std::stoul(argv[2]);
    responseBytes = std::stoul(argv[3]);
    Config::SetDefault("ns3::TcpL4Protocol::SocketType",
                       TypeIdValue(TypeId::LookupByName(std::string("ns3::") + argv[1])));
    Config::SetDefault("ns3::TcpSocket::SegmentSize", UintegerValue(MSS));
    double rttMs, kbps;
    uint32_t initcwnd;
    while (std::cin >> rttMs >> kbps >> initcwnd)
    {
        std::cout << rttMs << ' ' << kbps << ' ' << initcwnd << ' '
                  << Measured(rttMs, kbps, initcwnd, std::stoul(argv[4])) << '\n';
    }
    return 0;
}
