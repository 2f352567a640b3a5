/** Where the expressions of Kubernetes are compiled: the language, optionals and the libraries of policies. */
import { createEnvironment } from '#cel/environment.ts';
import type { Environment } from '#cel/environment.ts';
import { kubernetesLibraries } from '#cel/kubernetes/libraries.ts';
import { optionalLibrary } from '#cel/standard/optional.ts';
import { standardLibrary } from '#cel/standard/standard.ts';

/** Without variables: `withVariables` adds `object`, `self` and what else there is to look at. */
export const kubernetesEnvironment: Environment = createEnvironment([
  standardLibrary,
  optionalLibrary,
  ...kubernetesLibraries,
]);
