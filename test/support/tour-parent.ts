/** Stands in for a tour: starts its own plane, prints the path of the kubeconfig, and waits to be killed. */
import { join } from 'node:path';
import { startOwnPlane } from '#cli/tour/own-plane.ts';

const MAIN = join(import.meta.dirname, '../../src/main.ts');
const { kubeconfigPath } = await startOwnPlane([process.execPath, ...process.execArgv, MAIN]);
process.stdout.write(`${kubeconfigPath}\n`);
setInterval(() => {}, 60_000);
