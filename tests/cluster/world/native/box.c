// box: run one command as a container.
//
// Idea: join the pod's network namespace, make mount, pid, uts and ipc namespaces, and run the command as pid 1 on an
// overlay of the machine's own root, so that everything installed here is the image.
//
//   box FOLDER NETNS HOSTNAME CWD UID GID GROUPS FLAGS COMMAND...
//
//   FOLDER/upper  writable layer (may hold files already), FOLDER/work, FOLDER/root  empty folders
//   FOLDER/mounts lines "source<TAB>target<TAB>ro|rw", bind mounts in order
//   FOLDER/pid    written: pid of the command as seen from outside
//   GROUPS        comma-separated supplementary groups, "-" for none
//   FLAGS         letters: r read-only root, c no capabilities, n no new privileges, "-" for none
//
// Exit status: the command's own; 128 + signal when a signal ended it; 126 when the container cannot be made (told on
// stderr) and 127 when the command cannot be executed. The container ends when this process does, and this one when its
// parent does.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <linux/capability.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { CANNOT_MAKE = 126, CANNOT_EXECUTE = 127, MAX_GROUPS = 32 };

struct box {
    const char *folder, *netns, *hostname, *cwd, *groups, *flags;
    uid_t uid;
    gid_t gid;
    char *const *command;
};

static void die(const char *what) {
    fprintf(stderr, "box: %s: %s\n", what, strerror(errno));
    _exit(CANNOT_MAKE);
}

static void path_of(char *out, const char *format, ...) {
    va_list args;
    va_start(args, format);
    int length = vsnprintf(out, PATH_MAX, format, args);
    va_end(args);
    if (length < 0 || length >= PATH_MAX) {
        errno = ENAMETOOLONG;
        die(format);
    }
}

static int has(const struct box *box, char flag) { return strchr(box->flags, flag) != NULL; }

// A mount point: the folder or empty file itself and every folder above it.
static void make_target(const char *path, int is_folder) {
    char part[PATH_MAX];
    path_of(part, "%s", path);
    for (char *at = part + 1; *at; at++) {
        if (*at != '/') {
            continue;
        }
        *at = 0;
        if (mkdir(part, 0755) && errno != EEXIST) {
            die(part);
        }
        *at = '/';
    }
    if (is_folder) {
        if (mkdir(part, 0755) && errno != EEXIST) {
            die(part);
        }
    } else {
        int fd = open(part, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
        if (fd < 0) {
            die(part);
        }
        close(fd);
    }
}

static void make_read_only(const char *path) {
    if (mount(NULL, path, NULL, MS_REMOUNT | MS_BIND | MS_RDONLY, NULL)) {
        die(path);
    }
}

static void bind_all(const struct box *box) {
    char path[PATH_MAX], line[3 * PATH_MAX], from[PATH_MAX];
    path_of(path, "/.old%s/mounts", box->folder);
    FILE *mounts = fopen(path, "re");
    if (mounts == NULL) {
        die(path);
    }
    while (fgets(line, sizeof line, mounts)) {
        char *rest = line;
        char *source = strsep(&rest, "\t"), *target = strsep(&rest, "\t"), *mode = strsep(&rest, "\n");
        if (target == NULL || mode == NULL) {
            errno = EINVAL;
            die("mounts");
        }
        path_of(from, "/.old%s", source);
        struct stat is;
        if (stat(from, &is)) {
            die(from);
        }
        make_target(target, S_ISDIR(is.st_mode));
        if (mount(from, target, NULL, MS_BIND | MS_REC, NULL)) {
            die(target);
        }
        if (strcmp(mode, "ro") == 0) {
            make_read_only(target);
        }
    }
    fclose(mounts);
}

// Not chroot: absolute symlinks such as /var/run -> /run must resolve inside the new root while binds are made.
static void make_root(const struct box *box) {
    char root[PATH_MAX], path[PATH_MAX], layers[3 * PATH_MAX];
    path_of(root, "%s/root", box->folder);
    if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL)) {
        die("private mounts");
    }
    if (snprintf(layers, sizeof layers, "lowerdir=/,upperdir=%s/upper,workdir=%s/work", box->folder, box->folder) < 0) {
        die("overlay");
    }
    if (mount("overlay", root, "overlay", 0, layers)) {
        die("overlay");
    }
    path_of(path, "%s/proc", root);
    if (mount("proc", path, "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL)) {
        die("proc");
    }
    path_of(path, "%s/dev", root);
    if (mount("/dev", path, NULL, MS_BIND | MS_REC, NULL)) {
        die("dev");
    }
    static const char *const fresh[] = {"dev/shm", "run", "tmp"};
    for (size_t i = 0; i < sizeof fresh / sizeof *fresh; i++) {
        path_of(path, "%s/%s", root, fresh[i]);
        if (mount("tmpfs", path, "tmpfs", MS_NOSUID | MS_NODEV, i == 1 ? "mode=755" : "mode=1777")) {
            die(path);
        }
    }
    path_of(path, "%s/.old", root);
    if (mkdir(path, 0700) && errno != EEXIST) {
        die(path);
    }
    if (chdir(root) || syscall(SYS_pivot_root, ".", ".old") || chdir("/")) {
        die("pivot_root");
    }
    // A volume may be mounted over one of these; it stays as the pod asks.
    int own[] = {open("/run", O_PATH | O_CLOEXEC), open("/tmp", O_PATH | O_CLOEXEC)};
    bind_all(box);
    if (umount2("/.old", MNT_DETACH) || rmdir("/.old")) {
        die("/.old");
    }
    if (has(box, 'r')) {
        for (size_t i = 0; i < sizeof own / sizeof *own; i++) {
            path_of(path, "/proc/self/fd/%d", own[i]);
            make_read_only(path);
        }
        make_read_only("/");
    }
}

static void become_user(const struct box *box) {
    gid_t groups[MAX_GROUPS];
    size_t count = 0;
    for (const char *at = box->groups; *at >= '0' && *at <= '9' && count < MAX_GROUPS;) {
        char *end;
        groups[count++] = (gid_t)strtoul(at, &end, 10);
        at = *end == ',' ? end + 1 : end;
    }
    if (setgroups(count, groups) || setresgid(box->gid, box->gid, box->gid)) {
        die("groups");
    }
    if (has(box, 'c')) {
        for (unsigned long one = 0; prctl(PR_CAPBSET_READ, one, 0, 0, 0) >= 0; one++) {
            if (prctl(PR_CAPBSET_DROP, one, 0, 0, 0)) {
                die("bounding set");
            }
        }
    }
    if (setresuid(box->uid, box->uid, box->uid)) {
        die("user");
    }
    if (has(box, 'c')) {
        struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3, .pid = 0};
        struct __user_cap_data_struct none[2] = {{0}, {0}};
        if (syscall(SYS_capset, &head, none)) {
            die("capabilities");
        }
    }
    if (has(box, 'n') && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)) {
        die("no_new_privs");
    }
}

static void run_inside(const struct box *box) {
    make_root(box);
    if (sethostname(box->hostname, strlen(box->hostname))) {
        die("hostname");
    }
    if (chdir(box->cwd)) {
        die(box->cwd);
    }
    become_user(box);
    // A change of user clears the death signal.
    if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0)) {
        die("pdeathsig");
    }
    execvp(box->command[0], box->command);
    fprintf(stderr, "box: %s: %s\n", box->command[0], strerror(errno));
    _exit(CANNOT_EXECUTE);
}

static void write_pid(const struct box *box, pid_t pid) {
    char path[PATH_MAX], part[PATH_MAX];
    path_of(path, "%s/pid", box->folder);
    path_of(part, "%s/pid.part", box->folder);
    FILE *file = fopen(part, "we");
    if (file == NULL || fprintf(file, "%d\n", pid) < 0 || fclose(file) || rename(part, path)) {
        die(path);
    }
}

int main(int argc, char **argv) {
    if (argc < 10) {
        fprintf(stderr, "usage: box FOLDER NETNS HOSTNAME CWD UID GID GROUPS FLAGS COMMAND...\n");
        return CANNOT_MAKE;
    }
    const struct box box = {
        .folder = argv[1],
        .netns = argv[2],
        .hostname = argv[3],
        .cwd = argv[4],
        .uid = (uid_t)strtoul(argv[5], NULL, 10),
        .gid = (gid_t)strtoul(argv[6], NULL, 10),
        .groups = argv[7],
        .flags = argv[8],
        .command = argv + 9,
    };
    if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0)) {
        die("pdeathsig");
    }
    char path[PATH_MAX];
    path_of(path, "/run/netns/%s", box.netns);
    int netns = open(path, O_RDONLY | O_CLOEXEC);
    if (netns < 0 || setns(netns, CLONE_NEWNET)) {
        die(path);
    }
    if (unshare(CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWUTS | CLONE_NEWIPC)) {
        die("unshare");
    }
    int gate[2]; // the command starts when its pid is written
    if (pipe2(gate, O_CLOEXEC)) {
        die("pipe");
    }
    pid_t pid = fork();
    if (pid < 0) {
        die("fork");
    }
    if (pid == 0) {
        char go;
        close(gate[1]);
        if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) || read(gate[0], &go, 1) != 1) {
            _exit(CANNOT_MAKE);
        }
        run_inside(&box);
    }
    close(gate[0]);
    write_pid(&box, pid);
    if (write(gate[1], "g", 1) != 1) {
        die("gate");
    }
    int status;
    while (waitpid(pid, &status, 0) < 0) {
        if (errno != EINTR) {
            die("wait");
        }
    }
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}
