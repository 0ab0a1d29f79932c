// Kubernetes' own controllers of jobs and of resource claims, and nothing else of its controller manager.
//
// They make and delete the pods of jobs, and the claims of pods, on the API server of KUBECONFIG until told to end.
package main

import (
	"context"
	"log"
	"os"
	"os/signal"
	"syscall"

	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/controller/job"
	"k8s.io/kubernetes/pkg/controller/resourceclaim"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	config, err := clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))
	if err != nil {
		log.Fatal(err)
	}
	config.QPS, config.Burst = 1000, 1000
	client := kubernetes.NewForConfigOrDie(config)
	shared := informers.NewSharedInformerFactory(client, 0)
	controller, err := job.NewController(ctx, shared.Core().V1().Pods(), shared.Batch().V1().Jobs(), client)
	if err != nil {
		log.Fatal(err)
	}
	devices := shared.Resource().V1()
	claims, err := resourceclaim.NewController(
		klog.FromContext(ctx), resourceclaim.Features{}, client,
		shared.Core().V1().Pods(), devices.ResourceClaims(), devices.ResourceClaimTemplates(),
	)
	if err != nil {
		log.Fatal(err)
	}
	shared.Start(ctx.Done())
	go claims.Run(ctx, 2)
	controller.Run(ctx, 2)
}
