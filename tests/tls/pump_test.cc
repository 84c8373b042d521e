// Who gets through to whom, over real sockets, and what both sides hear of it.
#include "common/tls/pump.h"

#include <thread>

#include "common/tls/openssl.h"
#include "tests/tls/tls_testing.h"

namespace muster::tls {
namespace {

using testing::HasSubstr;

// What an HTTP/2 server begins with; our client waits for it.
const std::string kSettings("\0\0\0\4\0\0\0\0\0", 9);

class PumpTest : public testing::Test {
 protected:
  std::string Controller(const Validity& validity = Around(-1, 365)) const {
    return TestIdentity(authority_, Identity::Controller("lab"), validity);
  }
  std::string Node(const std::string& host, const Validity& validity = Around(-1, 365)) const {
    return TestIdentity(authority_, Identity::Node("lab", host), validity);
  }
  const std::string& trust() const { return authority_.certificate_pem; }

  // Both sides' results of one connection to host "n1".
  struct Both {
    absl::StatusOr<Pump::Opened> client;
    absl::StatusOr<Pump::Opened> server;
  };
  Both Connect(const std::shared_ptr<Credentials>& client,
               const std::shared_ptr<Credentials>& server) {
    TestSockets sockets = ConnectedTcp();
    Waiter client_waiter;
    Waiter server_waiter;
    pump_.Accept(std::move(sockets.server), server, server_waiter.Callback());
    pump_.Connect(std::move(sockets.client), client, "n1", std::chrono::seconds(10),
                  client_waiter.Callback());
    auto& accepted = server_waiter.Wait();
    if (accepted.ok()) WriteExactly(accepted->fd.get(), kSettings);
    auto& connected = client_waiter.Wait();
    return {std::move(connected), std::move(accepted)};
  }
  Both Connect(const TestFolder& client, const TestFolder& server) {
    return Connect(client.As(Role::kController), server.As(Role::kNode));
  }

  const KeyAndCertificate authority_ = TestAuthority();
  Pump pump_{Pump::Limits{}};
};

std::string Why(const absl::StatusOr<Pump::Opened>& opened) {
  return std::string(opened.status().message());
}

TEST_F(PumpTest, CarriesBytesBothWaysUntilOneSideEnds) {
  Both both = Connect({Controller(), trust()}, {Node("n1"), trust()});
  ASSERT_TRUE(both.client.ok()) << both.client.status();
  ASSERT_TRUE(both.server.ok()) << both.server.status();
  EXPECT_EQ(ReadExactly(both.client->fd.get(), 9), kSettings);
  std::string big(8 << 20, '\0');
  for (size_t i = 0; i < big.size(); ++i) big[i] = static_cast<char>(i * 2654435761U >> 13);
  std::thread up([&] { EXPECT_TRUE(WriteExactly(both.client->fd.get(), big)); });
  std::thread down([&] { EXPECT_TRUE(WriteExactly(both.server->fd.get(), big)); });
  std::string seen_by_client;
  std::thread reader([&] { seen_by_client = ReadExactly(both.client->fd.get(), big.size()); });
  EXPECT_TRUE(ReadExactly(both.server->fd.get(), big.size()) == big);
  up.join();
  down.join();
  reader.join();
  EXPECT_TRUE(seen_by_client == big);
  // The last bytes arrive, then the end.
  ASSERT_TRUE(WriteExactly(both.client->fd.get(), "bye"));
  both.client->fd.reset();
  EXPECT_EQ(ReadExactly(both.server->fd.get(), 100), "bye");
  EXPECT_EQ(both.server->epitaph->Read(), "the other side closed the connection");
}

TEST_F(PumpTest, AnotherAuthoritysControllerIsRefused) {
  const KeyAndCertificate other = TestAuthority();  // of the same name
  const Both both =
      Connect({TestIdentity(other, Identity::Controller("lab")), trust()}, {Node("n1"), trust()});
  EXPECT_THAT(Why(both.server), HasSubstr("not signed by an authority that we trust"));
  EXPECT_THAT(Why(both.client), HasSubstr("does not trust the authority of our certificate"));
}

TEST_F(PumpTest, AnotherAuthoritysNodeIsRefused) {
  const KeyAndCertificate other = TestAuthority();
  const Both both =
      Connect({Controller(), trust()}, {TestIdentity(other, Identity::Node("lab", "n1")), trust()});
  EXPECT_THAT(Why(both.client), HasSubstr("not signed by an authority that we trust"));
  EXPECT_FALSE(both.server.ok());
}

TEST_F(PumpTest, TheCertificateOfAnotherHostIsRefused) {
  const Both both = Connect({Controller(), trust()}, {Node("n2"), trust()});
  EXPECT_THAT(Why(both.client), HasSubstr("is for host n2 of authority 'lab', not for host n1"));
}

TEST_F(PumpTest, ANodeCannotActAsTheController) {
  // Node n2's own files, used as a client would.
  const TestFolder stolen(Node("n2"), trust());
  const TestFolder node(Node("n1"), trust());
  const Both both = Connect(stolen.As(Role::kNode), node.As(Role::kNode));
  EXPECT_THAT(Why(both.server), HasSubstr("is for host n2 of authority 'lab', not for the"));
  EXPECT_THAT(Why(both.client), HasSubstr("refuses us"));
}

TEST_F(PumpTest, TheControllerCannotActAsANode) {
  const TestFolder controller(Controller(), trust());
  const TestFolder other(Controller(), trust());
  const Both both = Connect(controller.As(Role::kController), other.As(Role::kController));
  EXPECT_THAT(Why(both.client), HasSubstr("is for the controller of authority 'lab', not for"));
}

TEST_F(PumpTest, AnExpiredControllerHearsSinceWhenAndWhatHelps) {
  const Both both = Connect({Controller(Around(-30, -2)), trust()}, {Node("n1"), trust()});
  for (const auto* side : {&both.client, &both.server}) {
    EXPECT_THAT(Why(*side), HasSubstr("the certificate of the controller expired"));
    EXPECT_THAT(Why(*side), HasSubstr("2 days ago"));
    EXPECT_THAT(Why(*side), HasSubstr("muster cert rotate --controller"));
  }
  EXPECT_TRUE(absl::IsFailedPrecondition(both.client.status()));
}

TEST_F(PumpTest, AnExpiredNodeIsRefused) {
  const Both both = Connect({Controller(), trust()}, {Node("n1", Around(-30, -2)), trust()});
  EXPECT_THAT(Why(both.client), HasSubstr("the certificate of host n1 expired"));
  EXPECT_THAT(Why(both.client), HasSubstr("muster cert push n1"));
}

TEST_F(PumpTest, NotYetValidIsSaidWithTheClock) {
  const Both both = Connect({Controller(Around(5, 30)), trust()}, {Node("n1"), trust()});
  EXPECT_THAT(Why(both.server), HasSubstr("not yet valid"));
  EXPECT_THAT(Why(both.client), HasSubstr("at least 5 days too early"));
}

TEST_F(PumpTest, AnExpiredAuthorityIsNamed) {
  const KeyAndCertificate old = *MakeAuthority("lab", Around(-30, -2));
  const Both both = Connect({TestIdentity(old, Identity::Controller("lab")), old.certificate_pem},
                            {TestIdentity(old, Identity::Node("lab", "n1")), old.certificate_pem});
  EXPECT_THAT(Why(both.client), HasSubstr("the certificate of authority 'lab' expired"));
}

TEST_F(PumpTest, TwoAuthoritiesAreTrustedDuringARotation) {
  const KeyAndCertificate next = TestAuthority();
  const std::string both_trusted = next.certificate_pem + trust();
  const Both both = Connect({Controller(), both_trusted},
                            {TestIdentity(next, Identity::Node("lab", "n1")), both_trusted});
  EXPECT_TRUE(both.client.ok()) << both.client.status();
  EXPECT_TRUE(both.server.ok()) << both.server.status();
}

TEST_F(PumpTest, ACertificateSignedByANodeIsWorthless) {
  // A node that signs with its own key, as if it were an authority.
  const std::string node = Node("n2");
  const size_t at = node.find("-----BEGIN CERTIFICATE");
  const KeyAndCertificate as_authority{node.substr(0, at), node.substr(at)};
  const std::string forged = TestIdentity(as_authority, Identity::Controller("lab"));
  const Both both = Connect({forged, trust()}, {Node("n1"), trust()});
  EXPECT_FALSE(both.server.ok());
  EXPECT_FALSE(both.client.ok());
}

// OpenSSL as somebody else would use it.
struct Stranger {
  explicit Stranger(int fd, int highest = TLS1_3_VERSION)
      : context(SSL_CTX_new(TLS_client_method())) {
    SSL_CTX_set_max_proto_version(context.get(), highest);
    ssl.reset(SSL_new(context.get()));
    SSL_set_fd(ssl.get(), fd);
    fcntl(fd, F_SETFL, 0);  // blocking
  }
  ContextPtr context;
  SslPtr ssl;
};

TEST_F(PumpTest, AClientWithoutACertificateIsRefused) {
  const TestFolder node(Node("n1"), trust());
  TestSockets sockets = ConnectedTcp();
  Waiter waiter;
  pump_.Accept(std::move(sockets.server), node.As(Role::kNode), waiter.Callback());
  Stranger stranger(sockets.client.get());
  SSL_connect(stranger.ssl.get());
  EXPECT_EQ(Why(waiter.Wait()), "it showed no certificate");
}

TEST_F(PumpTest, OlderTlsAndPlaintextAreRefused) {
  const TestFolder node(Node("n1"), trust());
  {
    TestSockets sockets = ConnectedTcp();
    Waiter waiter;
    pump_.Accept(std::move(sockets.server), node.As(Role::kNode), waiter.Callback());
    Stranger stranger(sockets.client.get(), TLS1_2_VERSION);
    EXPECT_NE(SSL_connect(stranger.ssl.get()), 1);
    EXPECT_EQ(Why(waiter.Wait()), "it does not speak TLS 1.3");
  }
  TestSockets sockets = ConnectedTcp();
  Waiter waiter;
  pump_.Accept(std::move(sockets.server), node.As(Role::kNode), waiter.Callback());
  ASSERT_TRUE(WriteExactly(sockets.client.get(), "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"));
  EXPECT_EQ(Why(waiter.Wait()), "it does not speak TLS");
}

TEST_F(PumpTest, AnUnfinishedHandshakeEndsInTime) {
  Pump pump(Pump::Limits{.handshake = std::chrono::milliseconds(50)});
  const TestFolder node(Node("n1"), trust());
  TestSockets sockets = ConnectedTcp();
  Waiter waiter;
  pump.Accept(std::move(sockets.server), node.As(Role::kNode), waiter.Callback());
  EXPECT_TRUE(absl::IsDeadlineExceeded(waiter.Wait().status())) << waiter.Wait().status();
}

TEST_F(PumpTest, TheOldestHandshakeMakesRoom) {
  Pump pump(Pump::Limits{.handshake = std::chrono::seconds(60), .handshakes = 4});
  const TestFolder node(Node("n1"), trust());
  const auto credentials = node.As(Role::kNode);
  std::vector<TestSockets> sockets;
  std::vector<Waiter> waiters(6);
  for (Waiter& waiter : waiters) {
    sockets.push_back(ConnectedTcp());
    pump.Accept(std::move(sockets.back().server), credentials, waiter.Callback());
  }
  for (int i = 0; i < 2; ++i) {
    EXPECT_THAT(Why(waiters[static_cast<size_t>(i)].Wait()), HasSubstr("made room"));
  }
}

TEST_F(PumpTest, AFloodOfHandshakesTakesNoPlaceOfConnections) {
  Pump pump(Pump::Limits{.handshake = std::chrono::seconds(60), .handshakes = 2, .open = 2});
  const TestFolder node(Node("n1"), trust());
  const TestFolder controller(Controller(), trust());
  const auto credentials = node.As(Role::kNode);
  std::vector<TestSockets> sockets;
  std::vector<Waiter> waiters(40);
  for (size_t i = 0; i < waiters.size(); ++i) sockets.push_back(ConnectedTcp());
  // All of them wait for the pump's thread at once.
  for (size_t i = 0; i < waiters.size(); ++i)
    pump.Accept(std::move(sockets[i].server), credentials, waiters[i].Callback());
  for (size_t i = 0; i + 2 < waiters.size(); ++i)
    EXPECT_THAT(Why(waiters[i].Wait()), HasSubstr("made room"));
  TestSockets last = ConnectedTcp();
  Waiter server;
  Waiter client;
  pump.Accept(std::move(last.server), credentials, server.Callback());
  pump.Connect(std::move(last.client), controller.As(Role::kController), "n1",
               std::chrono::seconds(10), client.Callback());
  EXPECT_TRUE(server.Wait().ok()) << server.Wait().status();
}

TEST_F(PumpTest, OnlySoManyConnectionsStand) {
  Pump pump(Pump::Limits{.open = 2});
  const TestFolder node(Node("n1"), trust());
  const TestFolder controller(Controller(), trust());
  std::vector<TestSockets> sockets;
  std::vector<Waiter> servers(3);
  std::vector<Waiter> clients(3);
  for (size_t i = 0; i < 3; ++i) {
    sockets.push_back(ConnectedTcp());
    pump.Accept(std::move(sockets[i].server), node.As(Role::kNode), servers[i].Callback());
    pump.Connect(std::move(sockets[i].client), controller.As(Role::kController), "n1",
                 std::chrono::seconds(10), clients[i].Callback());
    EXPECT_EQ(servers[i].Wait().ok(), i < 2) << servers[i].Wait().status();
  }
  EXPECT_THAT(Why(servers[2].Wait()), HasSubstr("2 connections stand already"));
}

TEST_F(PumpTest, EndingThePumpEndsWhoWaits) {
  auto pump = std::make_unique<Pump>(Pump::Limits{});
  const TestFolder node(Node("n1"), trust());
  TestSockets sockets = ConnectedTcp();
  Waiter waiter;
  pump->Accept(std::move(sockets.server), node.As(Role::kNode), waiter.Callback());
  ASSERT_TRUE(WriteExactly(sockets.client.get(), "\x16"));
  // Its turn has come once a second request, posted after it, is answered.
  const TempDir empty;
  Waiter second;
  pump->Accept(ConnectedTcp().server, std::make_shared<Credentials>(empty.path(), Role::kNode),
               second.Callback());
  EXPECT_TRUE(absl::IsNotFound(second.Wait().status()));
  pump.reset();
  EXPECT_TRUE(absl::IsCancelled(waiter.Wait().status())) << waiter.Wait().status();
}

}  // namespace
}  // namespace muster::tls
