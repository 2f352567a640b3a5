/** A wire that breaks: TCP to a server, cut once a connection has carried so many bytes towards it. */
import { once } from 'node:events';
import { connect, createServer, type AddressInfo, type Socket } from 'node:net';

export interface CuttingProxy {
  /** As the server is reached through it. */
  readonly url: string;
  stop(): Promise<void>;
}

/** `times`: how often it breaks; later connections hold. */
export async function startCuttingProxy(
  server: string,
  { afterBytes, times }: { readonly afterBytes: number; readonly times: number },
): Promise<CuttingProxy> {
  const { hostname, port } = new URL(server);
  const open = new Set<Socket>();
  let left = times;
  const proxy = createServer((near) => {
    const far = connect(Number(port), hostname);
    let bytes = 0;
    for (const [one, other] of [
      [near, far],
      [far, near],
    ] as const) {
      open.add(one);
      one.on('error', () => {});
      one.once('close', () => {
        open.delete(one);
        other.destroy();
      });
      one.pipe(other);
    }
    near.on('data', (chunk: Buffer) => {
      bytes += chunk.length;
      if (bytes < afterBytes || left <= 0) return;
      left--;
      near.destroy();
    });
  });
  proxy.listen(0, '127.0.0.1');
  await once(proxy, 'listening');
  return {
    url: `https://127.0.0.1:${(proxy.address() as AddressInfo).port}`,
    async stop() {
      const closed = once(proxy, 'close');
      proxy.close();
      for (const socket of open) socket.destroy();
      await closed;
    },
  };
}
