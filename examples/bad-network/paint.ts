import { styleText } from 'node:util'

export type Paint = (style: Parameters<typeof styleText>[0], text: string) => string

/** Colours for a terminal, unless its user wants none (https://no-color.org); plain text for files and pipes. */
export function paintFor(stream: { readonly isTTY?: boolean }): Paint {
  const inColour = stream.isTTY === true && !process.env.NO_COLOR
  return (style, text) => (inColour ? styleText(style, text) : text)
}
