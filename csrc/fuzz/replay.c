/* replay.c - runs a fuzz target without libFuzzer: every file of a corpus, then deterministic mutations of each.
 *
 * Usage: TARGET [-m ROUNDS] FILE|FOLDER...   ROUNDS mutations of every file; the same ones in every run.
 * A violated requirement or a sanitizer aborts; the input is then in "replay-crash" of the working directory. No corpus is an error.
 */
#include <dirent.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include "require.h"

#define LARGEST (1u << 20)

static uint8_t seed[LARGEST];
static uint8_t input[LARGEST + 16];
static size_t input_len;
static unsigned long inputs;
static uint64_t random_state;

static uint64_t next_random(void) { /* xorshift64* */
    random_state ^= random_state >> 12;
    random_state ^= random_state << 25;
    random_state ^= random_state >> 27;
    return random_state * 2685821657736338717u;
}

static void on_abort(int number) {
    FILE *file = fopen("replay-crash", "wb");
    if (file != NULL) {
        (void)fwrite(input, 1, input_len, file);
        (void)fclose(file);
    }
    (void)signal(number, SIG_DFL);
    (void)raise(number);
}

static void mutate(void) {
    static const char interesting[] = "\r\n\t :;,=%/.\\\"0f_-\x7f\x80";
    const size_t at = input_len > 0 ? (size_t)(next_random() % input_len) : 0;
    const uint8_t byte =
        next_random() % 2 ? (uint8_t)interesting[next_random() % sizeof(interesting)] : (uint8_t)next_random();
    switch (next_random() % 4) {
    case 0:
        if (input_len > 0) input[at] = byte;
        break;
    case 1: /* insert */
        memmove(input + at + 1, input + at, input_len - at);
        input[at] = byte;
        input_len++;
        break;
    case 2: { /* cut a piece out */
        const size_t n = input_len > at ? 1 + (size_t)(next_random() % (input_len - at)) % 8 : 0;
        if (n > input_len - at) break;
        memmove(input + at, input + at + n, input_len - at - n);
        input_len -= n;
        break;
    }
    default: /* cut the end off */
        if (next_random() % 4 == 0) input_len = at;
        break;
    }
}

static void run_input(const uint8_t *data, size_t len, unsigned long rounds) {
    random_state = 88172645463325252u ^ (uint64_t)len;
    for (unsigned long round = 0; round <= rounds; round++) {
        memcpy(input, data, len);
        input_len = len;
        for (uint64_t i = 0; round > 0 && i < 1 + next_random() % 4; i++)
            mutate();
        (void)LLVMFuzzerTestOneInput(input, input_len);
        inputs++;
    }
}

static void run_path(const char *path, unsigned long rounds) {
    struct stat info;
    if (stat(path, &info) == 0 && S_ISDIR(info.st_mode)) {
        struct dirent **entries;
        const int n = scandir(path, &entries, NULL, alphasort);
        for (int i = 0; i < n; i++) {
            char inner[4096];
            if (entries[i]->d_name[0] != '.') {
                snprintf(inner, sizeof(inner), "%s/%s", path, entries[i]->d_name);
                run_path(inner, rounds);
            }
            free(entries[i]);
        }
        if (n >= 0) free(entries);
        return;
    }
    FILE *file = fopen(path, "rb");
    if (file == NULL) {
        perror(path);
        exit(2);
    }
    const size_t len = fread(seed, 1, LARGEST, file);
    (void)fclose(file);
    run_input(seed, len, rounds);
}

int main(int argc, char **argv) {
    unsigned long rounds = 0;
    int option;
    while ((option = getopt(argc, argv, "m:")) != -1) {
        if (option != 'm') return 2;
        rounds = strtoul(optarg, NULL, 10);
    }
    (void)signal(SIGABRT, on_abort);
    for (int i = optind; i < argc; i++)
        run_path(argv[i], rounds);
    printf("%s: %lu inputs\n", argv[0], inputs);
    return inputs == 0;
}
