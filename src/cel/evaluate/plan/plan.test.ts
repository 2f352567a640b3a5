import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Environment } from '#cel/environment.ts';
import { plan } from '#cel/evaluate/plan/plan.ts';
import { kubernetesEnvironment } from '#cel/kubernetes-environment.ts';
import { parse } from '#cel/parse/parse.ts';

/** Counts lookups of functions: one for each call in the tree if each is planned once. */
function counting(): { environment: Environment; lookups: () => number } {
  let count = 0;
  const functions = new Map(kubernetesEnvironment.functions);
  const get = functions.get.bind(functions);
  functions.get = (name) => {
    count++;
    return get(name);
  };
  return { environment: { ...kubernetesEnvironment, functions }, lookups: () => count };
}

test('each node is planned once, however deep maps are nested', () => {
  let source = '[1]';
  const costs: number[] = [];
  for (let depth = 1; depth <= 24; depth++) {
    source = `[1].map(x${depth}, ${source} + [x${depth} + 1])`;
    const { environment, lookups } = counting();
    plan(parse(source, environment.macros), environment);
    costs.push(lookups());
  }
  assert.ok(costs[23]! > 0);
  assert.ok(costs[23]! <= 3 * costs[11]!, `twice the depth took ${costs[11]} and ${costs[23]} lookups`);
});
