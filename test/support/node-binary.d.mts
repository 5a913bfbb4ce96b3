/** The path of a real binary of that version, from the registry that npm is set to; `undefined`: it could not be installed. */
export function installNode(version: number): string | undefined

/**
 * The path of a program that a package brings, which is kept for the next run; `undefined`: it could not be installed. `program`: where
 * it is, below `node_modules`.
 */
export function installProgram(name: string, version: number | string, program: string): string | undefined

/** The major versions that the package supports. */
export const NODES: readonly number[]

/** The major version of the Node that runs this. */
export const OWN_NODE: number
