export function findBareBuiltins(folder: string): string[]
