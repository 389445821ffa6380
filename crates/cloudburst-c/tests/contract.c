// What the header promises: arguments that make no sense, errors and their text, time limits, threads.

#include <cloudburst.h>
#include <arpa/inet.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define EXPECT(condition)                                                                         \
    do {                                                                                          \
        if (!(condition)) {                                                                       \
            fprintf(stderr, "contract.c:%d: not so: %s; last error: %s\n", __LINE__, #condition,  \
                    cbrst_last_error());                                                          \
            exit(EXIT_FAILURE);                                                                   \
        }                                                                                         \
    } while (0)

// A status, and words that the error must have.
#define FAILS(call, status, words)                                                                \
    do {                                                                                          \
        EXPECT((call) == (status));                                                               \
        EXPECT(strstr(cbrst_last_error(), words));                                                \
    } while (0)

static const uint8_t KEY[32] = {7};
static void *const GARBAGE = (void *)1;

static cbrst_options local_options(void)
{
    cbrst_options options = CBRST_OPTIONS_INIT;
    options.bind = "127.0.0.1:0";
    options.key = KEY;
    options.capacity = 1000000000;
    options.deadline_ms = 60000; // patient, as the machine may be slow
    return options;
}

static cbrst_endpoint *open_endpoint(void)
{
    cbrst_options options = local_options();
    cbrst_endpoint *endpoint;
    EXPECT(cbrst_open(&options, &endpoint) == CBRST_OK);
    return endpoint;
}

// A socket of another program, and its address.
static int silent_socket(struct sockaddr_in *address)
{
    socklen_t len = sizeof *address;
    int opened = socket(AF_INET, SOCK_DGRAM, 0);
    *address = (struct sockaddr_in){.sin_family = AF_INET};
    address->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT(bind(opened, (struct sockaddr *)address, len) == 0);
    EXPECT(getsockname(opened, (struct sockaddr *)address, &len) == 0);
    return opened;
}

static uint64_t counter(const cbrst_endpoint *endpoint, const char *name)
{
    cbrst_counter counters[256];
    size_t count = cbrst_counters(endpoint, counters, 256);
    EXPECT(count <= 256);
    for (size_t at = 0; at < count; at++) {
        if (strcmp(counters[at].name, name) == 0)
            return counters[at].value;
    }
    EXPECT(!"a counter of that name");
    return 0;
}

static void endpoints_are_not_opened_with_options_that_make_no_sense(void)
{
    cbrst_endpoint *endpoint = GARBAGE;
    cbrst_options options = local_options();
    options.key = NULL;
    FAILS(cbrst_open(NULL, &endpoint), CBRST_INVALID_ARGUMENT, "`options` is NULL");
    EXPECT(!endpoint);
    FAILS(cbrst_open(&options, NULL), CBRST_INVALID_ARGUMENT, "`out` is NULL");
    FAILS(cbrst_open(&options, &endpoint), CBRST_INVALID_ARGUMENT, "neither `key` nor");
    options.key = KEY;
    options.trusted_network = true;
    FAILS(cbrst_open(&options, &endpoint), CBRST_INVALID_ARGUMENT, "both `key` and");
    options.trusted_network = false;
    options.also_accept_len = 1;
    FAILS(cbrst_open(&options, &endpoint), CBRST_INVALID_ARGUMENT, "`also_accept` is NULL");
    options.also_accept_len = 0;
    options.known_as = (const char *const[]){"10.0.0.1:0"};
    options.known_as_len = 1;
    FAILS(cbrst_open(&options, &endpoint), CBRST_NOT_OPENED, "10.0.0.1:0");
    options.known_as_len = 0;
    options.mtu = 70000;
    FAILS(cbrst_open(&options, &endpoint), CBRST_NOT_OPENED, "`mtu` is 70000");
    options.mtu = 0;
    options.fabric = "aws";
    FAILS(cbrst_open(&options, &endpoint), CBRST_NOT_OPENED, "`fabric` is `aws`");
    options.fabric = NULL;
    options.bind = "localhost:7000";
    FAILS(cbrst_open(&options, &endpoint), CBRST_INVALID_ARGUMENT, "\"localhost:7000\"");
    options.bind = "\xff";
    FAILS(cbrst_open(&options, &endpoint), CBRST_INVALID_ARGUMENT, "UTF-8");
    options.bind = "192.0.2.1:0"; // nobody has it
    FAILS(cbrst_open(&options, &endpoint), CBRST_NOT_OPENED, "192.0.2.1");
    options.bind = "127.0.0.1:0";
    options.paths = "ecmp:none";
    FAILS(cbrst_open(&options, &endpoint), CBRST_NOT_OPENED, "ecmp");
    EXPECT(!endpoint);
    options.paths = NULL;
    options.key = NULL;
    options.trusted_network = true;
    EXPECT(cbrst_open(&options, &endpoint) == CBRST_OK && endpoint);
    cbrst_close(endpoint);
}

static void options_of_other_versions_are_as_long_as_they_say(void)
{
    cbrst_endpoint *endpoint = GARBAGE;
    cbrst_options zero = {0};
    FAILS(cbrst_open(&zero, &endpoint), CBRST_INVALID_ARGUMENT, "`options->size` is 0");
    EXPECT(!endpoint);

    // An older program has no members after `paths`: what follows there is not read.
    cbrst_options options = local_options();
    options.size = offsetof(cbrst_options, paths) + sizeof options.paths;
    options.capacity = 1;
    options.mtu = 1;
    EXPECT(cbrst_open(&options, &endpoint) == CBRST_OK);
    cbrst_close(endpoint);

    // A newer one may have members that this library does not know, unless it sets them.
    struct {
        cbrst_options options;
        uint64_t later;
    } newer = {local_options(), 0};
    newer.options.size = sizeof newer;
    EXPECT(cbrst_open(&newer.options, &endpoint) == CBRST_OK);
    cbrst_close(endpoint);
    newer.later = 1;
    FAILS(cbrst_open(&newer.options, &endpoint), CBRST_INVALID_ARGUMENT, "does not have");
}

static void null_is_an_error_or_does_nothing(cbrst_endpoint *endpoint)
{
    cbrst_endpoint *handle;
    cbrst_message *message;
    cbrst_request *request;
    char text[CBRST_ADDRESS_LEN];
    FAILS(cbrst_with(NULL, 0, CBRST_DEFAULT_PRIORITY, &handle), CBRST_INVALID_ARGUMENT, "`endpoint` is NULL");
    FAILS(cbrst_with(endpoint, 0, 8, &handle), CBRST_INVALID_ARGUMENT, "`priority` is 8");
    FAILS(cbrst_connect(endpoint, NULL), CBRST_INVALID_ARGUMENT, "`peer` is NULL");
    cbrst_exchange call = {.peer = "localhost:7", .data = "x", .len = 1, .response = GARBAGE};
    FAILS(cbrst_call_many(endpoint, NULL, 1), CBRST_INVALID_ARGUMENT, "`calls` is NULL");
    FAILS(cbrst_call_many(endpoint, &call, 1), CBRST_INVALID_ARGUMENT, "\"localhost:7\"");
    EXPECT(call.status == CBRST_INVALID_ARGUMENT && !call.response);
    FAILS(cbrst_call_many(NULL, &call, 1), CBRST_INVALID_ARGUMENT, "`endpoint` is NULL");
    FAILS(cbrst_set_security(endpoint, NULL, NULL, 0), CBRST_INVALID_ARGUMENT, "`key` is NULL");
    FAILS(cbrst_set_security(endpoint, KEY, NULL, 1), CBRST_INVALID_ARGUMENT, "`also_accept`");
    EXPECT(cbrst_counters(NULL, NULL, 0) == 0);
    FAILS(cbrst_send(endpoint, "127.0.0.1:7", NULL, 1), CBRST_INVALID_ARGUMENT, "`data` is NULL");
    FAILS(cbrst_send(endpoint, "127.0.0.1:7", "x", SIZE_MAX), CBRST_INVALID_ARGUMENT, "memory");
    FAILS(cbrst_recv(NULL, 0, &message), CBRST_INVALID_ARGUMENT, "`endpoint` is NULL");
    FAILS(cbrst_call(endpoint, NULL, "x", 1, &message), CBRST_INVALID_ARGUMENT, "`peer` is NULL");
    FAILS(cbrst_recv_request(endpoint, 0, NULL), CBRST_INVALID_ARGUMENT, "`out` is NULL");
    FAILS(cbrst_recv_request(NULL, 0, &request), CBRST_INVALID_ARGUMENT, "`endpoint` is NULL");
    FAILS(cbrst_reply(NULL, "x", 1), CBRST_INVALID_ARGUMENT, "`request` is NULL");
    FAILS(cbrst_refuse(NULL), CBRST_INVALID_ARGUMENT, "`request` is NULL");
    FAILS(cbrst_shutdown(NULL, 0), CBRST_INVALID_ARGUMENT, "`endpoint` is NULL");
    FAILS(cbrst_local_address(endpoint, NULL, 9), CBRST_INVALID_ARGUMENT, "`text` is NULL");
    FAILS(cbrst_local_address(endpoint, text, 9), CBRST_INVALID_ARGUMENT, "`len` is 9");
    FAILS(cbrst_resolve(endpoint, NULL, text, sizeof text), CBRST_INVALID_ARGUMENT, "`name`");
    EXPECT(!cbrst_message_peer(NULL) && !cbrst_message_data(NULL) && !cbrst_message_len(NULL));
    EXPECT(!cbrst_request_message(NULL) && !cbrst_request_time_left_ms(NULL));
    cbrst_message_free(NULL);
    cbrst_request_free(NULL);
    cbrst_close(NULL);
}

static void nothing_comes_in_time(cbrst_endpoint *endpoint)
{
    cbrst_message *message = GARBAGE;
    cbrst_request *request = GARBAGE;
    FAILS(cbrst_recv(endpoint, 0, &message), CBRST_TIMED_OUT, "no message");
    FAILS(cbrst_recv_request(endpoint, 1, &request), CBRST_TIMED_OUT, "no request");
    EXPECT(!message && !request);
    EXPECT(cbrst_is_timeout(CBRST_TIMED_OUT) && !cbrst_may_have_been_delivered(CBRST_TIMED_OUT));
    EXPECT(!cbrst_is_timeout(CBRST_OK) && !cbrst_is_busy(CBRST_OK));
}

static void a_message_arrives_with_its_sender_and_may_be_empty_or_long(cbrst_endpoint *endpoint,
                                                                       const char *address)
{
    const size_t lengths[] = {0, 1, 300000};
    unsigned char *bytes = malloc(300000);
    EXPECT(bytes);
    for (size_t at = 0; at < 300000; at++)
        bytes[at] = (unsigned char)(at * 7);
    cbrst_endpoint *sender = open_endpoint();
    char resolved[CBRST_ADDRESS_LEN], name[CBRST_ADDRESS_LEN], here[CBRST_ADDRESS_LEN];
    snprintf(name, sizeof name, "localhost:%s", strchr(address, ':') + 1);
    EXPECT(cbrst_resolve(sender, name, resolved, sizeof resolved) == CBRST_OK);
    EXPECT(strcmp(resolved, address) == 0);
    EXPECT(cbrst_local_address(sender, here, sizeof here) == CBRST_OK);
    EXPECT(cbrst_connect(sender, name) == CBRST_OK);
    for (size_t at = 0; at < 3; at++) {
        cbrst_message *message;
        EXPECT(cbrst_send(sender, at == 1 ? name : address, bytes, lengths[at]) == CBRST_OK);
        EXPECT(cbrst_recv(endpoint, -1, &message) == CBRST_OK);
        EXPECT(cbrst_message_len(message) == lengths[at]);
        EXPECT(memcmp(cbrst_message_data(message), bytes, lengths[at]) == 0);
        EXPECT(strcmp(cbrst_message_peer(message), here) == 0);
        cbrst_message_free(message);
    }
    EXPECT(counter(sender, "sender.delivered") == 3 && counter(sender, "sender.sessions_opened") == 1);
    EXPECT(counter(sender, "sender.bytes_delivered") == 300001);
    EXPECT(counter(sender, "io.datagrams_sent") > 0 && counter(sender, "calls.calls_answered") == 0);
    EXPECT(cbrst_counters(sender, NULL, 9) == cbrst_counters(endpoint, NULL, 0));
    free(bytes);
    cbrst_close(sender);
}

static void a_name_without_an_address_has_a_status_of_its_own(cbrst_endpoint *endpoint)
{
    cbrst_message *message = GARBAGE;
    char text[CBRST_ADDRESS_LEN];
    cbrst_status status = cbrst_send(endpoint, "nobody.invalid:7", "x", 1);
    EXPECT(status == CBRST_NO_ADDRESS && strstr(cbrst_last_error(), "nobody.invalid:7"));
    EXPECT(!cbrst_may_have_been_delivered(status));
    EXPECT(!cbrst_is_timeout(status) && !cbrst_is_busy(status));
    EXPECT(cbrst_connect(endpoint, "no port") == CBRST_NO_ADDRESS);
    EXPECT(cbrst_call(endpoint, "nobody.invalid:7", "x", 1, &message) == CBRST_NO_ADDRESS);
    EXPECT(!message);
    EXPECT(cbrst_resolve(endpoint, "nobody.invalid:7", text, sizeof text) == CBRST_NO_ADDRESS);
}

static void *answer_until_shut_down(void *argument)
{
    cbrst_request *request;
    cbrst_status status;
    while ((status = cbrst_recv_request(argument, -1, &request)) == CBRST_OK) {
        const cbrst_message *message = cbrst_request_message(request);
        if (cbrst_message_len(message) == 0) {
            EXPECT(cbrst_refuse(request) == CBRST_OK);
            continue;
        }
        char first = *(const char *)cbrst_message_data(message);
        EXPECT(cbrst_reply(request, &first, 1) == CBRST_OK);
    }
    EXPECT(status == CBRST_CLOSED);
    return NULL;
}

static void many_calls_have_a_result_each(void)
{
    cbrst_endpoint *caller = open_endpoint(), *services[2];
    pthread_t threads[2];
    char addresses[2][CBRST_ADDRESS_LEN];
    for (size_t at = 0; at < 2; at++) {
        services[at] = open_endpoint();
        EXPECT(cbrst_local_address(services[at], addresses[at], CBRST_ADDRESS_LEN) == CBRST_OK);
        EXPECT(pthread_create(&threads[at], NULL, answer_until_shut_down, services[at]) == 0);
    }
    cbrst_exchange calls[5] = {{.peer = addresses[0], .data = "a", .len = 1},
                               {.peer = addresses[1], .data = "b", .len = 1},
                               {.peer = addresses[0]}, // refused
                               {.peer = addresses[1], .data = "c", .len = 1},
                               {.peer = addresses[1]}};
    cbrst_status status = cbrst_call_many(caller, calls, 5);
    EXPECT(status == CBRST_BUSY && strstr(cbrst_last_error(), "overloaded"));
    for (size_t at = 0; at < 5; at++) {
        if (calls[at].len == 0) {
            EXPECT(calls[at].status == CBRST_BUSY && !calls[at].response);
            continue;
        }
        EXPECT(calls[at].status == CBRST_OK && cbrst_message_len(calls[at].response) == 1);
        EXPECT(memcmp(cbrst_message_data(calls[at].response), calls[at].data, 1) == 0);
        EXPECT(strcmp(cbrst_message_peer(calls[at].response), calls[at].peer) == 0);
        cbrst_message_free(calls[at].response);
    }
    EXPECT(cbrst_call_many(caller, calls, 2) == CBRST_OK);
    cbrst_message_free(calls[0].response);
    cbrst_message_free(calls[1].response);
    EXPECT(cbrst_call_many(caller, NULL, 0) == CBRST_OK);
    EXPECT(counter(caller, "calls.calls_answered") == 5);
    for (size_t at = 0; at < 2; at++) {
        EXPECT(cbrst_shutdown(services[at], 60000) == CBRST_OK);
        EXPECT(pthread_join(threads[at], NULL) == 0);
        cbrst_close(services[at]);
    }
    cbrst_close(caller);
}

static cbrst_status sends(const cbrst_endpoint *from, const cbrst_endpoint *to, uint64_t deadline_ms)
{
    char address[CBRST_ADDRESS_LEN];
    cbrst_endpoint *handle;
    EXPECT(cbrst_local_address(to, address, sizeof address) == CBRST_OK);
    EXPECT(cbrst_with(from, deadline_ms, CBRST_DEFAULT_PRIORITY, &handle) == CBRST_OK);
    cbrst_status status = cbrst_send(handle, address, "x", 1);
    cbrst_close(handle);
    return status;
}

static void keys_change_while_an_endpoint_is_in_use(void)
{
    static const uint8_t OLD_AND_NEXT[2][32] = {{7}, {9}};
    const uint8_t *next = OLD_AND_NEXT[1];
    cbrst_options options = local_options();
    cbrst_endpoint *one = open_endpoint(), *old, *new, *both;
    EXPECT(cbrst_open(&options, &old) == CBRST_OK);
    options.key = next;
    EXPECT(cbrst_open(&options, &new) == CBRST_OK);
    options.also_accept = OLD_AND_NEXT;
    options.also_accept_len = 1;
    EXPECT(cbrst_open(&options, &both) == CBRST_OK);

    EXPECT(sends(old, both, 60000) == CBRST_OK && sends(new, both, 60000) == CBRST_OK);
    EXPECT(sends(new, one, 200) == CBRST_TIMED_OUT);
    EXPECT(cbrst_set_security(one, KEY, OLD_AND_NEXT + 1, 1) == CBRST_OK);
    EXPECT(sends(new, one, 60000) == CBRST_OK);
    EXPECT(sends(one, new, 60000) == CBRST_OK); // in the session that is there
    EXPECT(cbrst_set_security(one, next, NULL, 0) == CBRST_OK);
    EXPECT(sends(old, one, 200) == CBRST_TIMED_OUT);
    cbrst_close(both);
    cbrst_close(new);
    cbrst_close(old);
    cbrst_close(one);
}

static void an_option_has_its_effect(cbrst_endpoint *endpoint)
{
    // A port that is free, or was a moment ago.
    struct sockaddr_in free_port, silent;
    close(silent_socket(&free_port));
    char bind[CBRST_ADDRESS_LEN], alias[CBRST_ADDRESS_LEN], address[CBRST_ADDRESS_LEN];
    snprintf(bind, sizeof bind, "0.0.0.0:%u", ntohs(free_port.sin_port));
    snprintf(alias, sizeof alias, "127.0.0.2:%u", ntohs(free_port.sin_port));
    cbrst_options options = local_options();
    cbrst_endpoint *there, *other;
    options.bind = bind;
    options.known_as = (const char *const[]){"192.0.2.1:7000", alias};
    options.known_as_len = 2;
    EXPECT(cbrst_open(&options, &there) == CBRST_OK);
    EXPECT(cbrst_send(endpoint, alias, "x", 1) == CBRST_OK);
    cbrst_close(there);

    static char bytes[5000];
    options = local_options();
    options.mtu = 600;
    options.fabric = "cloud";
    options.keep_alive_ms = 1000;
    EXPECT(cbrst_local_address(endpoint, address, sizeof address) == CBRST_OK);
    EXPECT(cbrst_open(&options, &there) == CBRST_OK);
    EXPECT(cbrst_send(there, address, bytes, sizeof bytes) == CBRST_OK);
    EXPECT(counter(there, "sender.source_symbols") > sizeof bytes / 600);
    uint64_t sent = counter(there, "sender.handshakes_sent");
    for (int waited_ms = 0; counter(there, "sender.handshakes_sent") == sent; waited_ms += 50) {
        EXPECT(waited_ms < 60000); // nothing keeps the session alive
        nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL);
    }
    cbrst_message *message;
    EXPECT(cbrst_recv(endpoint, -1, &message) == CBRST_OK && cbrst_message_len(message) == sizeof bytes);
    cbrst_message_free(message);
    cbrst_close(there);

    int socket_there = silent_socket(&silent);
    snprintf(address, sizeof address, "127.0.0.1:%u", ntohs(silent.sin_port));
    options = local_options();
    options.deadline_ms = 100;
    EXPECT(cbrst_open(&options, &there) == CBRST_OK);
    EXPECT(cbrst_connect(there, address) == CBRST_TIMED_OUT);
    EXPECT(cbrst_with(there, 0, 7, &other) == CBRST_OK);
    EXPECT(cbrst_send(other, address, "x", 1) == CBRST_TIMED_OUT);
    cbrst_close(other);
    cbrst_close(there);
    close(socket_there);
}

static void *refuse_one_drop_one_and_wait(void *argument)
{
    cbrst_request *request;
    EXPECT(cbrst_recv_request(argument, -1, &request) == CBRST_OK);
    EXPECT(cbrst_refuse(request) == CBRST_OK);
    EXPECT(cbrst_recv_request(argument, -1, &request) == CBRST_OK);
    EXPECT(cbrst_request_time_left_ms(request) > 0);
    EXPECT(cbrst_message_len(cbrst_request_message(request)) == 1);
    cbrst_request_free(request);
    FAILS(cbrst_recv_request(argument, -1, &request), CBRST_CLOSED, "closed");
    return NULL;
}

// Ends the endpoint.
static void errors_say_what_is_certain_and_shutdown_ends_those_who_wait(cbrst_endpoint *endpoint,
                                                                       const char *address)
{
    cbrst_endpoint *caller = open_endpoint(), *hasty;
    cbrst_message *message = GARBAGE;
    cbrst_status status;

    // A port where nobody answers.
    struct sockaddr_in silent;
    int socket_there = silent_socket(&silent);
    char nobody[CBRST_ADDRESS_LEN];
    snprintf(nobody, sizeof nobody, "127.0.0.1:%u", ntohs(silent.sin_port));
    EXPECT(cbrst_with(caller, 100, CBRST_DEFAULT_PRIORITY, &hasty) == CBRST_OK);
    status = cbrst_send(hasty, nobody, "x", 1);
    EXPECT(status == CBRST_TIMED_OUT && strstr(cbrst_last_error(), "not delivered"));
    EXPECT(cbrst_call(hasty, nobody, "x", 1, &message) == CBRST_TIMED_OUT && !message);
    close(socket_there);
    cbrst_close(hasty);

    pthread_t thread;
    EXPECT(pthread_create(&thread, NULL, refuse_one_drop_one_and_wait, endpoint) == 0);
    status = cbrst_call(caller, address, "x", 1, &message);
    EXPECT(status == CBRST_BUSY && !message && strstr(cbrst_last_error(), "overloaded"));
    status = cbrst_call(caller, address, "x", 1, &message);
    EXPECT(status == CBRST_INDETERMINATE && !message);
    EXPECT(cbrst_may_have_been_delivered(status) && !cbrst_is_timeout(status));
    EXPECT(cbrst_shutdown(endpoint, 60000) == CBRST_OK);
    EXPECT(pthread_join(thread, NULL) == 0);
    FAILS(cbrst_recv(endpoint, -1, &message), CBRST_CLOSED, "closed");
    FAILS(cbrst_send(endpoint, address, "x", 1), CBRST_NOT_DELIVERED, "closing");
    cbrst_close(caller);
}

int main(void)
{
    EXPECT(cbrst_version()[0] != '\0' && cbrst_last_error()[0] == '\0');
    endpoints_are_not_opened_with_options_that_make_no_sense();
    options_of_other_versions_are_as_long_as_they_say();
    cbrst_endpoint *endpoint = open_endpoint();
    char address[CBRST_ADDRESS_LEN];
    EXPECT(cbrst_local_address(endpoint, address, sizeof address) == CBRST_OK);
    null_is_an_error_or_does_nothing(endpoint);
    nothing_comes_in_time(endpoint);
    a_message_arrives_with_its_sender_and_may_be_empty_or_long(endpoint, address);
    a_name_without_an_address_has_a_status_of_its_own(endpoint);
    an_option_has_its_effect(endpoint);
    many_calls_have_a_result_each();
    keys_change_while_an_endpoint_is_in_use();
    errors_say_what_is_certain_and_shutdown_ends_those_who_wait(endpoint, address);
    cbrst_close(endpoint);
    return EXIT_SUCCESS;
}
