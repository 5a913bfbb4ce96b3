/** One bar: what it stands for, and how long it is. */
export interface Bar {
  readonly label: string
  readonly value: number
  readonly emphasis: 'ours' | 'floor' | 'peer'
}

export interface Panel {
  readonly title: string
  readonly bars: readonly Bar[]
}

const WIDTH = 820
const LABEL_WIDTH = 360
const BAR_HEIGHT = 16
const LINE_HEIGHT = 24
const TITLE_HEIGHT = 34
const VALUE_WIDTH = 60

/** Horizontal bars, panel under panel, on one scale: an SVG that is read on a light page and on a dark one. */
export function chartOf(caption: string, unit: string, panels: readonly Panel[]): string {
  const most = Math.max(...panels.flatMap(({ bars }) => bars.map(({ value }) => value)))
  const scale = (WIDTH - LABEL_WIDTH - VALUE_WIDTH) / most
  const parts: string[] = []
  let y = 26
  for (const { title, bars } of panels) {
    parts.push(`<text class="title" x="0" y="${y + 16}">${escaped(title)}</text>`)
    y += TITLE_HEIGHT
    for (const { label, value, emphasis } of bars) {
      const width = Math.max(1, value * scale).toFixed(1)
      const end = (LABEL_WIDTH + Number(width) + 6).toFixed(1)
      parts.push(
        `<text class="label" x="${LABEL_WIDTH - 8}" y="${y + 12}">${escaped(label)}</text>`,
        `<rect class="${emphasis}" x="${LABEL_WIDTH}" y="${y}" width="${width}" height="${BAR_HEIGHT}" rx="2"/>`,
        `<text x="${end}" y="${y + 12}">${value.toFixed(0)} ${escaped(unit)}</text>`,
      )
      y += LINE_HEIGHT
    }
    y += 10
  }
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${y}" width="${WIDTH}" height="${y}" role="img" aria-label="${escaped(caption)}">
<style>${STYLE}</style>
<text class="caption" x="0" y="16">${escaped(caption)}</text>
${parts.join('\n')}
</svg>
`
}

const STYLE = [
  'text{font:12px system-ui,sans-serif;fill:#57606a}',
  '.label{text-anchor:end}',
  '.title{font-weight:600;fill:#1f2328}',
  '.ours{fill:#1a7f37}.floor{fill:#afb8c1}.peer{fill:#bc8c4c}',
  '@media(prefers-color-scheme:dark){text{fill:#9198a1}.title{fill:#f0f6fc}.ours{fill:#3fb950}.floor{fill:#545d68}.peer{fill:#9e7433}}',
].join('')

function escaped(text: string): string {
  return text.replace(/[&<>"]/g, (character) => `&#${character.charCodeAt(0)};`)
}
