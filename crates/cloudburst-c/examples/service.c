// A service in two threads, and a client that sends it a message and calls it. Both are in this program, but
// could be on different hosts.
//
//     cc service.c $(pkg-config --cflags --libs cloudburst) -lpthread -o service

#include <cloudburst.h>
#include <ctype.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void check(cbrst_status status, const char *what)
{
    if (status != CBRST_OK) {
        fprintf(stderr, "%s: %s%s\n", what, cbrst_last_error(),
                cbrst_may_have_been_delivered(status) ? " (ask before you repeat it)" : "");
        exit(EXIT_FAILURE);
    }
}

static cbrst_endpoint *open_endpoint(void)
{
    static const uint8_t key[32] = {42}; // from a safe place, the same at both ends
    cbrst_options options = CBRST_OPTIONS_INIT;
    options.bind = "127.0.0.1:0";
    options.key = key;
    options.paths = "ecmp:4";
    options.deadline_ms = 60000; // of messages, calls and replies
    cbrst_endpoint *endpoint;
    check(cbrst_open(&options, &endpoint), "open");
    return endpoint;
}

// Answers each request with its text in capitals, until the endpoint is shut down.
static void *serve(void *argument)
{
    const cbrst_endpoint *endpoint = argument;
    cbrst_request *request;
    cbrst_status status;
    while ((status = cbrst_recv_request(endpoint, -1, &request)) == CBRST_OK) {
        const cbrst_message *message = cbrst_request_message(request);
        size_t len = cbrst_message_len(message);
        const unsigned char *text = cbrst_message_data(message);
        char *answer = malloc(len + 1);
        if (!answer) {
            cbrst_request_free(request); // the caller is told that there is no answer
            continue;
        }
        for (size_t at = 0; at < len; at++)
            answer[at] = (char)toupper(text[at]);
        if (cbrst_reply(request, answer, len) != CBRST_OK)
            fprintf(stderr, "reply: %s\n", cbrst_last_error()); // the caller has gone, for instance
        free(answer);
    }
    if (status != CBRST_CLOSED)
        check(status, "recv_request");
    return NULL;
}

int main(void)
{
    cbrst_endpoint *service = open_endpoint();
    cbrst_endpoint *client = open_endpoint();
    char address[CBRST_ADDRESS_LEN];
    check(cbrst_local_address(service, address, sizeof address), "local_address");

    // A message. When this returns, it is in the queue of the receiver's application.
    check(cbrst_send(client, address, "hello", 5), "send");
    cbrst_message *message;
    check(cbrst_recv(service, 60000, &message), "recv");
    printf("%.*s from a client\n", (int)cbrst_message_len(message),
           (const char *)cbrst_message_data(message));
    cbrst_message_free(message);

    // Two calls, the second of them urgent.
    pthread_t threads[2];
    for (size_t at = 0; at < 2; at++) {
        if (pthread_create(&threads[at], NULL, serve, service) != 0)
            abort();
    }
    cbrst_endpoint *urgent; // another handle of the same endpoint, which it keeps open
    check(cbrst_with(client, 60000, 7, &urgent), "with");
    const cbrst_endpoint *handles[] = {client, urgent};
    for (size_t at = 0; at < 2; at++) {
        cbrst_message *response;
        check(cbrst_call(handles[at], address, "is it there?", 12, &response), "call");
        printf("%.*s\n", (int)cbrst_message_len(response),
               (const char *)cbrst_message_data(response));
        cbrst_message_free(response);
    }

    check(cbrst_shutdown(service, 60000), "shutdown"); // ends the threads
    for (size_t at = 0; at < 2; at++)
        pthread_join(threads[at], NULL);
    cbrst_close(urgent);
    cbrst_close(client);
    cbrst_close(service);
    return EXIT_SUCCESS;
}
