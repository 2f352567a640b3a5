/** The libraries that Kubernetes adds to the language. */
import { setsLibrary } from '#cel/extensions/sets.ts';
import { stringsLibrary } from '#cel/extensions/strings.ts';
import { twoVariableLibrary } from '#cel/extensions/two-variable-macros.ts';
import { authorizerLibrary } from '#cel/kubernetes/authorizer.ts';
import { cidrLibrary } from '#cel/kubernetes/cidr.ts';
import { ipLibrary } from '#cel/kubernetes/ip.ts';
import { listsLibrary } from '#cel/kubernetes/lists.ts';
import { namedFormatLibrary } from '#cel/kubernetes/named-format.ts';
import { quantityLibrary } from '#cel/kubernetes/quantity.ts';
import { regexLibrary } from '#cel/kubernetes/regex.ts';
import { urlLibrary } from '#cel/kubernetes/url.ts';
import type { Library } from '#cel/library.ts';

/** The libraries of a ValidatingAdmissionPolicy in 1.32, without the standard and optional libraries. */
export const kubernetesLibraries: readonly Library[] = [
  urlLibrary,
  regexLibrary,
  listsLibrary,
  authorizerLibrary,
  quantityLibrary,
  stringsLibrary,
  setsLibrary,
  ipLibrary,
  cidrLibrary,
  namedFormatLibrary,
  twoVariableLibrary,
];
