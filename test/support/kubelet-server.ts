/** The HTTPS endpoint of a kubelet. A test sets the answers of /containerLogs and reads the requests. */
import { createPrivateKey, createPublicKey, X509Certificate } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { startExtensionServer, type ExtensionServer, type Issuer } from '#test/support/extension-server.ts';
import type { Loose } from '#test/support/test-api.ts';

/** Returns the CA that an engine keeps in its data directory. */
export function issuerOf(pkiDir: string): Issuer {
  const pem = readFileSync(join(pkiDir, 'ca.crt'), 'utf8');
  const privateKey = createPrivateKey(readFileSync(join(pkiDir, 'ca.key'), 'utf8'));
  const name = /CN=(.*)/.exec(new X509Certificate(pem).subject)?.[1] ?? '';
  return { pem, name, keys: { privateKey, publicKey: createPublicKey(privateKey) } };
}

/** Starts the endpoint with a certificate for this host, signed by the CA in `pkiDir` or by another issuer. */
export function startKubelet(pkiDir: string, issuer = issuerOf(pkiDir)): Promise<ExtensionServer> {
  return startExtensionServer({ hosts: ['127.0.0.1'], clientCa: issuerOf(pkiDir).pem, issuer });
}

/** A node whose kubelet listens at this address and port. */
export function aNode(name: string, port: number, address = '127.0.0.1'): Loose {
  const addresses = [
    { type: 'Hostname', address: 'nowhere.invalid' },
    { type: 'InternalIP', address },
  ];
  const status = { addresses, daemonEndpoints: { kubeletEndpoint: { Port: port } } };
  return { apiVersion: 'v1', kind: 'Node', metadata: { name }, status };
}

export function aPod(name: string, spec: Loose): Loose {
  const { containers = ['main'], ...rest } = spec;
  const images = (names: string[]) => names.map((container) => ({ name: container, image: 'busybox' }));
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, namespace: 'default' },
    spec: { containers: images(containers), ...rest },
  };
}
