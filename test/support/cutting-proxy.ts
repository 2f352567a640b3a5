/** A TCP proxy that breaks connections: it closes one after it has carried a number of bytes to the server. */
import { once } from 'node:events';
import { connect, createServer, type AddressInfo, type Socket } from 'node:net';

export interface CuttingProxy {
  /** The address of the server through the proxy. */
  readonly url: string;
  stop(): Promise<void>;
}

/** Starts a proxy that breaks the first `times` connections; later ones work. */
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
    for (const [from, to] of [
      [near, far],
      [far, near],
    ] as const) {
      open.add(from);
      from.on('error', () => {});
      from.once('close', () => {
        open.delete(from);
        to.destroy();
      });
      from.pipe(to);
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
