/** The path of a real binary of that version, from the registry that npm is set to; `undefined`: it could not be installed. */
export function installNode(version: number): string | undefined
