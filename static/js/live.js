// Placeholder until the live client lands in the next commit: the page is right without it.
export {};
