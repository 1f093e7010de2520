"""The commands of the command line, a file each; every file has its click command as `command`."""
