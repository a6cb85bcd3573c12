package sqlite_test
import ("testing";"os";"runtime/pprof";"context";"deed.dev/deed/internal/store";"deed.dev/deed/internal/store/sqlite";"deed.dev/deed/internal/store/storetest";"fmt";"time")
func TestZZ(t *testing.T){
 for _,n:=range []int{1000,150000}{
 var prof func()
 r:=testing.Benchmark(func(b *testing.B){})
 _=r
 s,err:=sqlite.Open(t.Context(),t.TempDir(),sqlite.Options{Origin:"b.example",TestOnlyNoSync:true}); if err!=nil{t.Fatal(err)}
 k:=new(storetest.Kit)
 a:=fill(&testing.B{},s,k,n)
 f,_:=os.Create(fmt.Sprintf("/tmp/zz%d.prof",n)); pprof.StartCPUProfile(f)
 st:=time.Now(); c0:=cpu()
 for range 5000 { if err:=s.Commit(context.Background(),func(tx store.Tx)error{return attach(tx,k,a)});err!=nil{t.Fatal(err)}}
 fmt.Println(n,time.Since(st)/5000,(cpu()-c0)/5000)
 pprof.StopCPUProfile(); f.Close()
 s.Close(); _=prof
 }
}
