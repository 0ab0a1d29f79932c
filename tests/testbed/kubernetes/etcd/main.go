// etcd as it is, built like the other programs of the test bed: as new as API servers of today want it.
package main

import (
	"os"

	"go.etcd.io/etcd/server/v3/etcdmain"
)

func main() {
	etcdmain.Main(os.Args)
}
