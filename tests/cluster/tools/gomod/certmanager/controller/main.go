// controller: the controllers of cert-manager for ACME and Ingresses in one process, or its HTTP-01 solver.
//
// In: `controller run KUBECONFIG NAMESERVER SOLVER_IMAGE`, or `controller solver --listen-port=N --domain=D --token=T --key=K`, the
// arguments of a solver's pod. `run` ends with SIGTERM. Out: logs on standard error.
// cert-manager's own binaries are modules inside its repository, which the Go module proxy does not have.
package main

import (
	"context"
	"flag"
	"log"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/cert-manager/cert-manager/pkg/controller"
	_ "github.com/cert-manager/cert-manager/pkg/controller/acmechallenges"
	_ "github.com/cert-manager/cert-manager/pkg/controller/acmeorders"
	shim "github.com/cert-manager/cert-manager/pkg/controller/certificate-shim/ingresses"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificaterequests/acme"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificaterequests/approver"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificates/issuing"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificates/keymanager"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificates/readiness"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificates/requestmanager"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificates/revisionmanager"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificates/trigger"
	_ "github.com/cert-manager/cert-manager/pkg/controller/issuers"
	_ "github.com/cert-manager/cert-manager/pkg/issuer/acme"
	"github.com/cert-manager/cert-manager/pkg/issuer/acme/http/solver"
	logf "github.com/cert-manager/cert-manager/pkg/logs"
	"k8s.io/apimachinery/pkg/api/resource"
)

const (
	workers       = 5
	requests      = 50 // to the API server each second
	challenges    = 60
	shortestPause = time.Hour // after a failure; a test has none
)

func main() {
	if len(os.Args) > 1 && os.Args[1] == "solver" {
		solve(os.Args[2:])
		return
	}
	if len(os.Args) != 5 || os.Args[1] != "run" {
		log.Fatal("usage: controller run KUBECONFIG NAMESERVER SOLVER_IMAGE | controller solver ...")
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	run(ctx, os.Args[2], os.Args[3], os.Args[4])
}

func solve(arguments []string) {
	flags := flag.NewFlagSet("solver", flag.ExitOnError)
	made := &solver.HTTP01Solver{}
	flags.IntVar(&made.ListenPort, "listen-port", 0, "")
	flags.StringVar(&made.Domain, "domain", "", "")
	flags.StringVar(&made.Token, "token", "", "")
	flags.StringVar(&made.Key, "key", "", "")
	check(flags.Parse(arguments))
	check(made.Listen(logf.Log))
}

func run(ctx context.Context, kubeconfig, nameserver, image string) {
	factory, err := controller.NewContextFactory(ctx, controller.ContextOptions{
		Kubeconfig:         kubeconfig,
		KubernetesAPIQPS:   requests,
		KubernetesAPIBurst: requests,
		IssuerOptions:      controller.IssuerOptions{ClusterResourceNamespace: "default"},
		ACMEOptions: controller.ACMEOptions{
			HTTP01SolverImage:                 image,
			HTTP01SolverResourceRequestCPU:    resource.MustParse("10m"),
			HTTP01SolverResourceRequestMemory: resource.MustParse("64Mi"),
			HTTP01SolverResourceLimitsCPU:     resource.MustParse("100m"),
			HTTP01SolverResourceLimitsMemory:  resource.MustParse("64Mi"),
			ACMEHTTP01SolverRunAsNonRoot:      true,
			HTTP01SolverNameservers:           []string{nameserver},
			DNS01CheckRetryPeriod:             time.Second,
		},
		IngressShimOptions: controller.IngressShimOptions{DefaultIssuerKind: "Issuer", DefaultIssuerGroup: "cert-manager.io"},
		CertificateOptions: controller.CertificateOptions{
			CertificateRequestMinimumBackoffDuration: shortestPause,
			CertificateRequestMaximumBackoffDuration: shortestPause,
		},
		SchedulerOptions: controller.SchedulerOptions{MaxConcurrentChallenges: challenges},
	})
	check(err)
	root, err := factory.Build()
	check(err)
	known := controller.Known()
	if known[shim.ControllerName] == nil {
		log.Fatal("cert-manager has no controller of Ingresses")
	}
	ended := make(chan error)
	started := 0
	for name, construct := range known {
		made, err := construct(factory)
		if err != nil {
			log.Fatalf("%s: %v", name, err)
		}
		started++
		go func() { ended <- made.Run(workers, ctx) }()
	}
	root.SharedInformerFactory.Start(ctx.Done())
	root.KubeSharedInformerFactory.Start(ctx.Done())
	root.HTTP01ResourceMetadataInformersFactory.Start(ctx.Done())
	for range started {
		check(<-ended)
	}
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
