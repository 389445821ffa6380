// What the header promises: arguments that make no sense, errors and their text, time limits, threads.

#include <cloudburst.h>
#include <arpa/inet.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
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

// Patient, as the machine may be slow.
static cbrst_endpoint *open_endpoint(void)
{
    cbrst_options options = {.bind = "127.0.0.1:0", .key = KEY, .capacity = 1000000000};
    cbrst_endpoint *endpoint, *patient;
    EXPECT(cbrst_open(&options, &endpoint) == CBRST_OK);
    EXPECT(cbrst_with(endpoint, 60000, CBRST_DEFAULT_PRIORITY, &patient) == CBRST_OK);
    cbrst_close(endpoint);
    return patient;
}

static void endpoints_are_not_opened_with_options_that_make_no_sense(void)
{
    cbrst_endpoint *endpoint = GARBAGE;
    cbrst_options options = {.bind = "127.0.0.1:0"};
    FAILS(cbrst_open(NULL, &endpoint), CBRST_INVALID_ARGUMENT, "`options` is NULL");
    EXPECT(!endpoint);
    FAILS(cbrst_open(&options, NULL), CBRST_INVALID_ARGUMENT, "`out` is NULL");
    FAILS(cbrst_open(&options, &endpoint), CBRST_INVALID_ARGUMENT, "neither `key` nor");
    options.key = KEY;
    options.trusted_network = true;
    FAILS(cbrst_open(&options, &endpoint), CBRST_INVALID_ARGUMENT, "both `key` and");
    options.trusted_network = false;
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

static void null_is_an_error_or_does_nothing(cbrst_endpoint *endpoint)
{
    cbrst_endpoint *handle;
    cbrst_message *message;
    cbrst_request *request;
    char text[CBRST_ADDRESS_LEN];
    FAILS(cbrst_with(NULL, 0, CBRST_DEFAULT_PRIORITY, &handle), CBRST_INVALID_ARGUMENT, "`endpoint` is NULL");
    FAILS(cbrst_with(endpoint, 0, 8, &handle), CBRST_INVALID_ARGUMENT, "`priority` is 8");
    FAILS(cbrst_connect(endpoint, NULL), CBRST_INVALID_ARGUMENT, "`peer` is NULL");
    FAILS(cbrst_send(endpoint, "here", "x", 1), CBRST_INVALID_ARGUMENT, "\"here\"");
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
    EXPECT(cbrst_connect(sender, address) == CBRST_OK);
    for (size_t at = 0; at < 3; at++) {
        cbrst_message *message;
        EXPECT(cbrst_send(sender, address, bytes, lengths[at]) == CBRST_OK);
        EXPECT(cbrst_recv(endpoint, -1, &message) == CBRST_OK);
        EXPECT(cbrst_message_len(message) == lengths[at]);
        EXPECT(memcmp(cbrst_message_data(message), bytes, lengths[at]) == 0);
        EXPECT(strcmp(cbrst_message_peer(message), here) == 0);
        cbrst_message_free(message);
    }
    free(bytes);
    cbrst_close(sender);
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
    struct sockaddr_in silent = {.sin_family = AF_INET};
    silent.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t len = sizeof silent;
    int socket_there = socket(AF_INET, SOCK_DGRAM, 0);
    EXPECT(bind(socket_there, (struct sockaddr *)&silent, len) == 0);
    EXPECT(getsockname(socket_there, (struct sockaddr *)&silent, &len) == 0);
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
    cbrst_endpoint *endpoint = open_endpoint();
    char address[CBRST_ADDRESS_LEN];
    EXPECT(cbrst_local_address(endpoint, address, sizeof address) == CBRST_OK);
    null_is_an_error_or_does_nothing(endpoint);
    nothing_comes_in_time(endpoint);
    a_message_arrives_with_its_sender_and_may_be_empty_or_long(endpoint, address);
    errors_say_what_is_certain_and_shutdown_ends_those_who_wait(endpoint, address);
    cbrst_close(endpoint);
    return EXIT_SUCCESS;
}
